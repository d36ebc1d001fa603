"""Idempotency-Key: a request that is repeated with its key is executed at most once and answered the same.

- `keys.py`          the header's rule; one hash for a key in its scope
- `fingerprint.py`   what makes two requests the same: RFC 8785 form of the body, and the query
- `record.py`        what is stored of a request with a key: who executes it, until when, what came of it
- `reservations.py`  those records by compare-and-swap: reserve, renew, take over, finalize, release
- `engine.py`        the flow: reserve, execute, finalize; or wait, replay, reconcile
- `notes.py`         says in records that outcomes are in the chain, after they are answered
- `leases.py`        keeps what this process executes from being given up for dead
- `cleanup.py`       removes records that have expired

Promises. Of all attempts with one key at most one has an effect, whoever was paused, killed or taken over,
and all of them are answered the same; a caller is authorized again before it is told. That an effect happens
at most once does not rest on the records: every state has an index of the keys in its chain, which the commit
itself asks (`auth/committing.py`). Records say who is at work, bind the key to a payload, and keep what is
not in any chain: refusals, and answers of requests that commit nothing.

Knows nothing of HTTP (`api/idempotency.py` does) and nothing of catalogs.
"""
