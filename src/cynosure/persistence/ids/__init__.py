"""Object ids that need no coordination, and the leases that make this true.

- `snowflake.py`    the layout of an id, and the generator: unique and increasing within its grant
- `node_lease.py`   who may use which node id, until when; one updateable object per node id
- `leased_ids.py`   keeps a lease for the life of a process; `async with LeasedIds(...) as ids: ids.next()`
- `owner.py`        which process wrote a lease, for operators

Promises: an id is made once, whatever clocks, pauses and lost answers do (a successor on a node id starts
at the timestamp where its predecessor had to stop); ids of one process increase; two processes hold one
node id at the same time only if their clocks differ by more than the skew margin.
"""

from cynosure.persistence.ids.leased_ids import LeasedIds
from cynosure.persistence.ids.node_lease import NODE_LEASE, NodeLeases
from cynosure.persistence.ids.owner import Owner, this_process
from cynosure.persistence.ids.snowflake import IdSource, SnowflakeIds, named_id, timestamp_us_of

__all__ = [
    "NODE_LEASE",
    "IdSource",
    "LeasedIds",
    "NodeLeases",
    "Owner",
    "SnowflakeIds",
    "named_id",
    "this_process",
    "timestamp_us_of",
]
