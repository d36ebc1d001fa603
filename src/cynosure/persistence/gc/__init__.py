"""Garbage collection: what no state, recent head, retained commit or pin can reach is deleted.

`../reach.py` walks the object graph exactly, `pins.py` keeps states alive for long readers, `collect.py` is
the run: list candidates, raise every generation, mark, delete.
"""
