"""What the mirror has and the remote has not, or has otherwise: found out, told, and mended if wanted.

- `drift.py`    what can be wrong with an entry of the mirror
- `looking.py`  asking the remote for each of them
- `names.py`    lists of the remote's, looked through
- `moves.py`    what it has under another name
- `hanging.py`  grants and policies that end with what is gone
- `mending.py`  the mirror brought in line

The operation itself is `federation/reconcile.py`.
"""
