"""What waits for tables and namespaces of a remote: row filters and masks, and what they are for."""

from typing import Literal

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.mirror.seen import INDEX
from cynosure.federation.mirror.waiting import find_policies, read_left, scan_left
from cynosure.federation.reconcile import require_federated
from cynosure.persistence.listing import list_page


class Waits(Struct, frozen=True):
    """Restrictions that wait for one table or namespace."""

    kind: Literal["table", "namespace", "uuid"]
    """For whatever has this name next, or for the table with this uuid wherever it is seen again."""
    path: tuple[str, ...]
    """The name; of a uuid, the namespace whose restrictions these are, or nothing when they are its own."""
    uuid: str
    policies: tuple[str, ...]
    """By name. None: all of them were dropped, and it waits for nothing."""


class WaitingPage(Struct, frozen=True):
    """Some of what waits."""

    entries: tuple[Waits, ...]
    next_token: str | None = None


async def list_waiting(
    catalog: OpenCatalog, caller: Caller, *, token: str | None = None, size: int = 100
) -> WaitingPage:
    """A page of what waits in a federated catalog, to who may reconcile it."""
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.RECONCILE_CATALOG, catalog.target())
    require_federated(catalog)
    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index=INDEX,
        prefix=b"",
        size=size,
        token=token,
        scan=scan_left,
    )
    found = [read_left(key, value) for key, value in page.entries]
    entries = [
        Waits(each.kind, each.path, each.uuid, tuple(map(str, await find_policies(state, each))))
        for each in found
    ]
    return WaitingPage(tuple(entries), page.next_token)
