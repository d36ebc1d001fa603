"""Credentials that go with a plan: read-only, for the table or only for where the planned files are.

A maintainer must not break: whoever may not read the files gets nothing here, whatever a plan tells them.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.facade import refuse_on_facade
from cynosure.catalog.file_access.giving import Access, give_access, load_vended
from cynosure.catalog.file_access.modes import Delegation
from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.managed.state import TableState
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.planner import Page
from cynosure.catalog.planning.viewer import Viewer
from cynosure.common.errors import BadInput
from cynosure.storage.access.ports import Scope
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location, is_allowed

_MOST_DIRECTORIES: Final = 8
"""A session policy has room for about as many."""


def wants_paths(catalog: OpenCatalog, delegation: Delegation) -> bool:
    """Whether the paths of a page are needed for its credentials."""
    return bool(delegation) and catalog.shared.settings.planning.credentials == "partitions"


class PlanAccess(NamedTuple):
    """How a client reaches the files of a plan."""

    access: Access
    places: tuple[str, ...]
    """Where the table's files are."""


async def give_plan_access(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    state: TableState,
    delegation: Delegation,
    viewer: Viewer,
    page: Page,
) -> PlanAccess | None:
    """How a client reaches the files of a plan, whose first page this is; None for not at all."""
    if not delegation or not viewer.has_files:
        return None
    if catalog.is_facade:
        refuse_on_facade(catalog.entity, ops.LOAD_TABLE_TO_READ)
    storage = catalog.storage
    whole = table_scope(catalog, state, is_writable=False)
    places = tuple([place.text for place in whole.locations])
    is_vended = storage.vending is not None and (delegation.vended or storage.signer is None)
    if is_vended and not page.parts and wants_paths(catalog, delegation):
        scope = _narrow(whole, page.paths)
        if scope is not None:
            try:
                vended = await load_vended(catalog, caller, table, scope)
                return PlanAccess(Access(storage.client_config, vended), places)
            except (StorageRefused, StorageUnavailable):
                # The table's own may be in memory, or requests are signed.
                pass
    access = await give_access(catalog, caller, table, state, delegation, is_writable=False)
    return PlanAccess(access, places)


def _narrow(scope: Scope, paths: Iterable[str]) -> Scope | None:
    """The directories of these files, none inside another; None when there is no short list of them."""
    texts = {path.rpartition("/")[0] for path in paths}
    if not 0 < len(texts) <= _MOST_DIRECTORIES:
        return None
    try:
        places = [Location.parse(text) for text in sorted(texts)]
    except BadInput:
        return None
    if not all(is_allowed(place, scope.locations) for place in places):
        return None
    outermost = [
        place for place in places if not any(place != other and place.is_within(other) for other in places)
    ]
    return Scope(tuple(dict.fromkeys(outermost)), is_writable=False)
