"""The gateway's end of fragment streams: who may have which scan task, credentials, who is alive.

- `broker.py`    listens, greets, watches; `live_stream.py` one stream
- `brokered.py`  one statement's fragments: tokens, attempts, failures, newest credentials
- `registry.py`  which workers are healthy; `runtime.py` what ran where
- `tokens.py`, `certificate.py`, `failures.py`, `metrics.py`

A maintainer must not break: a fragment has one live stream in each place of a plan, the newest attempt's;
without a good token nothing is told; and when a statement ends, its tasks and credentials are forgotten.
"""
