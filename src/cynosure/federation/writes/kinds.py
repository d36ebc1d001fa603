"""Tables and views, as changes treat both alike."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier, table_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_table_ref, require_view_ref
from cynosure.catalog.targets import InCatalog
from cynosure.federation.mirror import (
    prepare_forgotten_table,
    prepare_forgotten_view,
    prepare_moved_table,
    prepare_moved_view,
)
from cynosure.federation.remote import RemoteCatalog, RemoteTable, RemoteView
from cynosure.federation.writes.looking import (
    find_table,
    find_view,
    load_known_table,
    load_known_view,
    look_at_table,
    look_at_view,
)
from cynosure.federation.writes.write import Scene
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef

_Found = RemoteTable | RemoteView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of thing that is changed."""

    key: Callable[[Identifier], bytes]
    """In `names`."""
    target: Callable[[OpenCatalog, Identifier], InCatalog]
    """For the authorizer."""
    look: Callable[[Scene, Identifier], Awaitable[None]]
    """Has it in the mirror as the remote has it, or none."""
    require_ref: Callable[[View, Identifier], Awaitable[ObjRef]]
    load_known: Callable[[Scene, View, Identifier], Awaitable[_Found]]
    find: Callable[[Scene, Identifier], Awaitable[_Found]]
    """As the remote has it now, whatever the mirror has."""
    rename: Callable[[RemoteCatalog, Identifier, Identifier, str | None], Awaitable[None]]
    """At the remote, with an Idempotency-Key."""
    prepare_forgotten: Callable[[OpenCatalog, Caller, View, Identifier], Awaitable[Prepared[None]]]
    prepare_moved: Callable[
        [OpenCatalog, Caller, View, Identifier, Identifier, str], Awaitable[Prepared[None]]
    ]
    """Of what has this uuid."""


TABLES: Final = Kind(
    key=table_key,
    target=OpenCatalog.table,
    look=look_at_table,
    require_ref=require_table_ref,
    load_known=load_known_table,
    find=find_table,
    rename=lambda remote, source, target, key: remote.rename_table(source, target, key=key),
    prepare_forgotten=prepare_forgotten_table,
    prepare_moved=partial(prepare_moved_table, is_by_caller=True),
)
VIEWS: Final = Kind(
    key=view_key,
    target=OpenCatalog.view,
    look=look_at_view,
    require_ref=require_view_ref,
    load_known=load_known_view,
    find=find_view,
    rename=lambda remote, source, target, key: remote.rename_view(source, target, key=key),
    prepare_forgotten=prepare_forgotten_view,
    prepare_moved=prepare_moved_view,
)
