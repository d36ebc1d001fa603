"""The names that a remote has, of a few pages at most: to look through them, not to show them."""

from typing import Final

from msgspec import Struct

from cynosure.catalog.names import MAX_LEVELS, Namespace
from cynosure.common.errors import CynosureError
from cynosure.federation.lists import is_fitting, told_of
from cynosure.federation.reconciling.drift import Drift, Kind
from cynosure.federation.remote import RemoteCatalog
from cynosure.persistence.listing import MAX_PAGE

_MOST_PAGES: Final = 10
"""Of a list that is looked through for something that is gone."""
FEW_PAGES: Final = 2
"""Of one that is only glanced at."""
_MOST_TOLD: Final = 20
"""Names of one namespace that cannot be names here."""


class Names(Struct, frozen=True):
    """Names at the remote, as far as they were read."""

    fitting: frozenset[str]
    unfit: tuple[str, ...]
    """Those that cannot be names here."""


async def read_names(
    remote: RemoteCatalog, namespace: Namespace, kind: Kind, most_pages: int = _MOST_PAGES
) -> Names:
    """The names of tables or views in a namespace, or of the namespaces right below it."""
    asks = {"table": remote.list_tables, "view": remote.list_views, "namespace": remote.list_namespaces}
    fitting: set[str] = set()
    unfit: list[str] = []
    token: str | None = None
    for _ in range(most_pages):
        page = await asks[kind](namespace, token=token, size=MAX_PAGE)
        for name in page.names:
            if is_fitting(name):
                fitting.add(name)
            else:
                unfit.append(name)
        if not page.next_token or page.next_token == token:
            break
        token = page.next_token
    return Names(frozenset(fitting), tuple(unfit))


async def find_unfit(remote: RemoteCatalog, namespace: Namespace) -> list[Drift]:
    """Names in a namespace that nobody can ask for here."""
    kinds: tuple[Kind, ...] = ("table", "view") if remote.abilities.has_views else ("table",)
    found: list[Drift] = []
    for kind in kinds:
        try:
            names = await read_names(remote, namespace, kind, FEW_PAGES)
        except CynosureError:
            # That it does not answer is told by the entries themselves.
            continue
        for name in names.unfit[:_MOST_TOLD]:
            path = (*namespace, told_of(name))
            found.append(Drift(kind=kind, path=path, difference="name-not-allowed"))
    return found


async def read_namespaces(remote: RemoteCatalog, most: int) -> list[Namespace]:
    """The namespaces that the remote has, those at the top first, and at most so many."""
    found: list[Namespace] = []
    parents: list[Namespace] = [()]
    deepest = MAX_LEVELS if remote.abilities.has_nested_namespaces else 1
    # Each of them is asked about once, so a remote cannot keep us busy by answering the same again.
    for parent in parents:
        if len(found) >= most or len(parent) >= deepest:
            break
        try:
            names = (await read_names(remote, parent, "namespace", FEW_PAGES)).fitting
        except CynosureError:
            # Dropped meanwhile, or out of reach: what is below the others is still worth a look.
            continue
        below = [(*parent, name) for name in sorted(names)]
        found += below
        parents += below[:most]
    return found[:most]
