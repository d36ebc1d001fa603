"""A storm of commits from real processes, written down so that a test can judge it afterwards.

    python -m cynosure.testing.storm write   --store URL --ledger FILE --writers 4
    python -m cynosure.testing.storm hail    --store URL --ledger FILE --ledger FILE --rounds 5
    python -m cynosure.testing.storm collect --store URL

- `ledger.py`    one line per request sent, answered or refused; what `kill -9` leaves is still readable
- `writers.py`   the workload: items whose counts only ever add up
- `collecting.py`  garbage collection beside it
- `hail.py`      kills writing processes at random moments
- `faults.py`    a backend that kills or stops its own process at a chosen moment
- `verify.py`    every ledger against the chain of commits: nothing lost, nothing twice, nothing out of order

A maintainer must not break: a request is in the ledger before it is sent, and an answer before it is counted.
"""
