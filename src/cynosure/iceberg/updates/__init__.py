"""Updates of a table: one struct and one function for each action of the protocol.

`decode_updates` reads them, `apply_updates` applies them in order to a `Draft` of the table. The structs
carry schemas, snapshots and the like as raw JSON, so that fields unknown to this version stay in them.
Where to look: `shape.py` (schemas, specs, orders), `snapshots.py` (snapshots, branches, tags, statistics),
`basics.py` (the rest).
"""

from cynosure.iceberg.updates.apply import TableUpdate, apply_updates, decode_updates

__all__ = ["TableUpdate", "apply_updates", "decode_updates"]
