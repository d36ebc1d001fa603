"""Which files of a table can hold rows that match a filter.

- `pruner.py`            a filter, ready to be asked about manifests, files and partitions: start here
- `normal.py`            the filter without complements, as the tests below take it
- `project.py`           what a filter says of partition values, at most and at least (`transform.py`)
- `values.py`            a test on values, and on the bounds of many values
- `metrics_filter.py`    a filter on the packed metrics of a manifest, all files at once
- `residual.py`          what is left of a filter in a partition
- `partition_check.py`   whether the metrics of a file that is appended contradict its partition

A maintainer must not break: when in doubt, a file stays. A file too many costs time; a file too few is a
wrong answer that nobody notices.
"""
