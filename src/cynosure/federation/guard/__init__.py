"""What stands between requests and a remote: so that one that is slow, gone or lying harms nobody else.

- `guarded.py`  a remote with all of this around it; what callers get
- `limits.py`   so many at once, so many waiting, and no principal at the cost of others
- `breaker.py`  one that keeps failing is left alone for a while
- `retries.py`  of what changes nothing, and never more than a tenth of all requests
- `health.py`   how it is, for people
- `metrics.py`  how it is, for machines

A maintainer must not break: a request that changes something is sent once, and whatever leaves its outcome
open is `OutcomeUnknown`; what ends the waiting of one caller never ends the request of another.
"""
