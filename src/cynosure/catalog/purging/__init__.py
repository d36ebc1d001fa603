"""Tables that are dropped with their files: a tombstone between a table and its end (ADR 0024).

- `tombstone.py`  what a tombstone is, and where it is kept
- `entombing.py`  the change that drops a table and puts one there
- `purge.py`      a request to purge: the tombstone, the order, and waiting for its end
- `ordering.py`   the order of a purge, and what the executor's answers mean
- `lifting.py`    ends without a purge: the table is put back
- `ending.py`     ends with one: the final drop
- `settling.py`   what a task that has ended means for its tombstone
- `metrics.py`    what is counted
- `outbox.py`     what one of all servers does for all tombstones from time to time

What is deleted, by whom and in which order is not known here: `cynosure.delegation`.

A maintainer must not break: *purging* is entered by one commit (`operations/begin_purging.py`) and left only
by the final drop; everything that puts a table back expects a tombstone that is *restorable*.
"""
