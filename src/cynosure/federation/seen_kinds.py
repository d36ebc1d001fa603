"""Tables, views and namespaces, as `seeing.py` treats all of them alike.

Must not break: only what the remote itself says that it has not is `missing`. Whatever else goes wrong is no
reason to give anything up.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchNamespace, NoSuchTable, NoSuchView
from cynosure.catalog.names import Identifier, Namespace, namespace_key, table_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import NotFound
from cynosure.federation.aliases import ListNames
from cynosure.federation.mirror import (
    Seen,
    backfill_namespace,
    backfill_table,
    backfill_view,
    forget_namespace,
    forget_table,
    forget_view,
    move_table,
    move_view,
)
from cynosure.federation.remote import Abilities, RemoteCatalog, RemoteTable, RemoteView, Tag, Unchanged
from cynosure.federation.stages.names import can_have_namespace, can_have_table, can_have_view
from cynosure.federation.stages.partial import may_know_namespace, may_know_table, may_know_view
from cynosure.persistence.commit import State

N = TypeVar("N")
"""What names something of this kind."""
F = TypeVar("F")
"""What a remote answers that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renames(Generic[F]):
    """How something is found again that has another name at the remote."""

    uuid: Callable[[F], str]
    find: Callable[[RemoteCatalog, Identifier], Awaitable[F | Unchanged]]
    """Raises what `Kind.load` does."""
    lists: Callable[[RemoteCatalog], ListNames]
    move: Callable[[OpenCatalog, Caller, Identifier, Identifier, str], Awaitable[None]]
    """In the mirror, if what has the first name there has this uuid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[N, F]):
    """One kind of thing that is seen. Who changes the mirror says, last, what it had before."""

    label: str
    key: Callable[[N], bytes]
    """In `names`."""
    namespace: Callable[[N], Namespace]
    """Which namespace must be spelled as the remote spells it."""
    can_have: Callable[[Abilities, N], bool]
    may_know: Callable[[OpenCatalog, Caller, N, State], Awaitable[bool]]
    load: Callable[[RemoteCatalog, N, Tag | None], Awaitable[F | Unchanged]]
    missing: tuple[type[NotFound], ...]
    """What `load` raises when the remote has no such thing."""
    forget: Callable[[OpenCatalog, Caller, N, Seen | None], Awaitable[object]]
    backfill: Callable[[OpenCatalog, Caller, N, F, Seen | None], Awaitable[object]]
    renames: Renames[F] | None = None
    """`None`: nothing tells whether it is the same under another name."""


TABLES: Final[Kind[Identifier, RemoteTable]] = Kind(
    label="tables",
    key=table_key,
    namespace=lambda table: table.namespace,
    can_have=can_have_table,
    may_know=may_know_table,
    load=lambda remote, table, tag: remote.load_table(table, tag),
    missing=(NoSuchTable, NoSuchNamespace),
    forget=lambda catalog, caller, table, known: forget_table(catalog, caller, table, expected=known),
    backfill=lambda catalog, caller, table, found, known: backfill_table(
        catalog, caller, table, found, expected=known
    ),
    renames=Renames(
        uuid=lambda found: found.uuid,
        find=lambda remote, table: remote.load_table(table),
        lists=lambda remote: remote.list_tables,
        move=move_table,
    ),
)
VIEWS: Final[Kind[Identifier, RemoteView]] = Kind(
    label="views",
    key=view_key,
    namespace=lambda view: view.namespace,
    can_have=can_have_view,
    may_know=may_know_view,
    load=lambda remote, view, tag: remote.load_view(view, tag),
    missing=(NoSuchView, NoSuchNamespace),
    forget=lambda catalog, caller, view, known: forget_view(catalog, caller, view, expected=known),
    backfill=lambda catalog, caller, view, found, known: backfill_view(
        catalog, caller, view, found, expected=known
    ),
    renames=Renames(
        uuid=lambda found: found.uuid,
        find=lambda remote, view: remote.load_view(view),
        lists=lambda remote: remote.list_views,
        move=move_view,
    ),
)
NAMESPACES: Final[Kind[Namespace, Mapping[str, str]]] = Kind(
    label="namespaces",
    key=namespace_key,
    namespace=lambda namespace: namespace,
    can_have=can_have_namespace,
    may_know=may_know_namespace,
    # They have no versions: whoever asks is told all of it.
    load=lambda remote, namespace, _: remote.load_namespace(namespace),
    missing=(NoSuchNamespace,),
    forget=lambda catalog, caller, namespace, _: forget_namespace(catalog, caller, namespace),
    backfill=lambda catalog, caller, namespace, found, _: backfill_namespace(
        catalog, caller, namespace, found
    ),
)
