"""A scan on an executor: what Spark's Python workers run for one fragment.

    fragment id ─► stream to the broker ─► ScanTask ─► `query.scan` ─► batches to Spark

- `mapped.py`         the function that Spark maps; `identity.py` which attempt, on which executor
- `stream_client.py`  the stream; `watch.py` what both of its threads know of the scan
- `failures.py`       what is said when it fails; `tracing.py` its span in the statement's trace

A maintainer must not break: what is raised here reaches Spark's logs and event files, so it has constant text
only; and nothing is kept when the fragment is over.
"""
