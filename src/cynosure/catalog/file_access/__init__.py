"""Giving clients access to a table's files: what they ask for, where, and what they get.

- `modes.py`     what a client asks for
- `scope.py`     where: the locations of a table, validated again for every time they are given away
- `giving.py`    what it gets: credentials, or where to have its requests signed

Must not break: nothing is minted or signed for a location that has not been validated against the catalog's
allowed locations *now*, and that is not claimed by this very table.
"""
