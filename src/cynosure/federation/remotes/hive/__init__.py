"""Hive Metastore, over Thrift.

`thrift.py` has values on the wire, `client.py` requests, `records.py` tables and databases, `locks.py` the
lock of a table, `pointers.py` what a remote of pointers does.

The client is our own: generated code drops fields that it does not know, and an alteration sends a whole
table back; it also allocates as much as an answer claims to hold, and blocks a thread for every request.

Held to a metastore 3.1.3. Newer ones have the same requests; their conditional alteration is asked for too.
"""

from cynosure.federation.remotes.hive.pointers import open_hive

__all__ = ["open_hive"]
