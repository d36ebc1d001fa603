"""What was last seen of a remote, as contents of the catalog that stands for it.

- `seen.py`        which version of the remote's it is: the index `remote`
- `tables.py`      a table as the remote has it: `backfill_table`
- `views.py`, `namespaces.py`  the same for views and namespaces
- `forgetting.py`  what the remote has no more
- `moving.py`      what it has under another name
- `returning.py`   what it has again, under whatever name
- `waiting.py`     restrictions that wait for what comes
- `respelling.py`  what is attached under a spelling that is none
- `facades.py`     tables that were never seen, for grants by name
- `changing.py`    how all of these are committed

What is backfilled is checked as if somebody registered it, and kept as if it had been; so all other
operations of the catalog work on it as on any table.

A maintainer must not break: the contents and the record of which version they are change in one commit. And
who says that a remote has something is the remote alone: nothing here takes a caller's word for it.
"""

from cynosure.federation.mirror.facades import facade_table
from cynosure.federation.mirror.forgetting import (
    forget_namespace,
    forget_table,
    forget_view,
    prepare_forgotten_namespace,
    prepare_forgotten_table,
    prepare_forgotten_view,
)
from cynosure.federation.mirror.moving import (
    move_table,
    move_view,
    prepare_moved_table,
    prepare_moved_view,
)
from cynosure.federation.mirror.namespaces import backfill_namespace, prepare_namespace
from cynosure.federation.mirror.respelling import respell_namespace, respell_table
from cynosure.federation.mirror.seen import Seen, find_seen
from cynosure.federation.mirror.tables import backfill_table, prepare_table
from cynosure.federation.mirror.views import backfill_view, prepare_view
from cynosure.federation.mirror.waiting import find_awaited_namespaces, find_awaited_tables

__all__ = [
    "Seen",
    "backfill_namespace",
    "backfill_table",
    "backfill_view",
    "facade_table",
    "find_awaited_namespaces",
    "find_awaited_tables",
    "find_seen",
    "forget_namespace",
    "forget_table",
    "forget_view",
    "move_table",
    "move_view",
    "prepare_forgotten_namespace",
    "prepare_forgotten_table",
    "prepare_forgotten_view",
    "prepare_moved_table",
    "prepare_moved_view",
    "prepare_namespace",
    "prepare_table",
    "prepare_view",
    "respell_namespace",
    "respell_table",
]
