"""How a change to a catalog's `grants` is authorized and committed.

A change rests on other references too: the rights of its caller and the principal roles it names are in
the realm's `principals`, the names of tables and namespaces in the catalog's `main`. Each that was asked is a
guard: if it has moved before the commit, the change is prepared, and authorized, again. So of a grant and a
drop, or of a grant and the revocation of the right to make it, one is decided after the other has been seen.

Must not break: whatever is read of another reference inside `prepare` is a guard of what is prepared.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from cynosure.auth.caller import Caller
from cynosure.auth.committing import Check, commit_as
from cynosure.auth.ports import Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Recall
from cynosure.auth.targets import CatalogRoleTarget
from cynosure.catalog.errors import CatalogClosed, NoSuchCatalogRole
from cynosure.catalog.guards import Guards, join_guards
from cynosure.catalog.names import GRANTS_CLOSED
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.roles.lookup import FoundRole, find_role
from cynosure.persistence.commit import Base, Change, Prepared, State, View
from cynosure.persistence.commit.records import raw_detail

R = TypeVar("R")
PrepareRole = Callable[[View, FoundRole, Base], Awaitable[Prepared[R]]]
"""Works a change out on a state of `grants`, for a role in it, with the catalog's `main` as it is now."""


async def require_open(view: View) -> None:
    """Refuse to change the grants of a catalog that is being dropped."""
    if await view.find("ids", GRANTS_CLOSED) is not None:
        raise CatalogClosed("The catalog is being dropped", fix="Use another catalog.")


async def commit_grants(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    prepare: Callable[[View], Awaitable[Prepared[R]]],
    recall: Recall[R],
) -> R:
    """Commit a change to the catalog's grants, if the caller may make it to the catalog as a whole."""

    async def check(view: View) -> Guards:
        return await catalog.authorize(await catalog.read(), caller, operation, catalog.target())

    async def authorized(view: View) -> Prepared[R]:
        await require_open(view)
        guards = await check(view)
        prepared = await prepare(view)
        return replace(prepared, guards=join_guards(guards, prepared.guards))

    return (
        await commit_as(catalog.grants, caller, operation.name, authorized, check=check, recall=recall)
    ).result


async def commit_role(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    role: str,
    prepare: PrepareRole[R],
    recall: Recall[R],
    *,
    targets: tuple[Target, ...] | None = None,
) -> R:
    """Commit a change about one catalog role. Without `targets`, it is the role that it is done to."""

    async def authorized(view: View) -> Prepared[R]:
        await require_open(view)
        main = await catalog.committer.read()
        found, guards = await _authorize(catalog, caller, operation, role, view, main.state, targets)
        prepared = await prepare(view, found, main)
        return replace(prepared, guards=join_guards(guards, prepared.guards))

    check = check_role(catalog, caller, operation, role, targets)
    return (
        await commit_as(catalog.grants, caller, operation.name, authorized, check=check, recall=recall)
    ).result


def check_role(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    role: str,
    targets: tuple[Target, ...] | None = None,
) -> Check:
    """How `commit_role` authorizes: the role is that of a state of `grants`, the catalog as it is now."""

    async def check(view: View) -> Guards:
        return (await _authorize(catalog, caller, operation, role, view, await catalog.read(), targets))[1]

    return check


async def read_role(
    catalog: OpenCatalog, caller: Caller, operation: Operation, role: str
) -> tuple[State, FoundRole]:
    """A catalog role and the state it is in, if the caller may read this of it."""
    state = (await catalog.grants.read()).state
    found, _ = await _authorize(catalog, caller, operation, role, state, await catalog.read(), None)
    return state, found


async def _authorize(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    role: str,
    view: View,
    main: View,
    targets: tuple[Target, ...] | None,
) -> tuple[FoundRole, Guards]:
    found = await find_role(view, role)
    if found is None and not catalog.is_hiding:
        raise NoSuchCatalogRole(role)
    if targets is None:
        targets = (CatalogRoleTarget(catalog.entity.id, role),)
    # Where existence is hidden, who may not list roles is refused with the error for a missing one, or for
    # whatever else is unseen, before it is told that this one is.
    guards = await catalog.authorize(main, caller, operation, *targets)
    if found is None:
        raise NoSuchCatalogRole(role)
    return found, guards


def role_change(kind: str, role: FoundRole, index: str, key: bytes, **details: object) -> Change:
    """A line of the feed about a catalog role."""
    entity = role.entity
    return Change(
        kind=kind,
        index=index,
        key=key,
        detail=raw_detail({"id": entity.id, "name": entity.name, **details}),
    )
