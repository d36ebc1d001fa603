"""The change feed: what was committed to a catalog, in order, from wherever a reader left off.

The commits themselves are the feed: each holds the requests it contains, with their typed changes. Their
order from old to new is in `persistence.history.chain`.

- `cursor.py`  where a reader stands, as a token that outlives restarts
- `watch.py`   waiting for the next commit, together with all others who wait
- `read.py`    one page of changes
"""
