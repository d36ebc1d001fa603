"""What the remote has no more: given up here.

Its id waits for it, with grants and policies (`returning.py`), and so do its restrictions, for whatever comes
(`waiting.py`). It is not kept for an undrop: only the remote could bring it back, and then it is seen again.

Must not break: a namespace that holds policies or generic tables stays. They are ours, the remote knows
nothing of them, and a restriction must not end because somebody dropped a namespace elsewhere.
"""

import asyncio
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.catalog.cascading.contents import Kind, Thing, walk_contents
from cynosure.catalog.changes import merge
from cynosure.catalog.dropping import make_drop, make_drop_of
from cynosure.catalog.entities import NAMESPACE
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import (
    Identifier,
    Namespace,
    children_prefix,
    facades_prefix,
    generics_prefix,
    namespace_key,
    policies_prefix,
    table_key,
    tables_prefix,
    view_key,
    views_prefix,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_table_ref, require_open
from cynosure.federation.mirror.changing import Collected, commit_mirror
from cynosure.federation.mirror.facades import leaving_facade
from cynosure.federation.mirror.returning import leave_id
from cynosure.federation.mirror.seen import ANYTHING, Expected, erasing, find_seen, require_expected
from cynosure.federation.mirror.waiting import leave_restrictions, leave_to_namespace
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef

_HELD: Final = (
    tables_prefix,
    children_prefix,
    views_prefix,
    generics_prefix,
    policies_prefix,
    facades_prefix,
)
"""What a namespace can hold."""


async def forget_table(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, expected: Expected = ANYTHING
) -> None:
    """Give a table up that the remote has not. Nothing is committed when it is not here either."""

    async def prepare(view: View) -> Prepared[None]:
        return await prepare_forgotten_table(catalog, caller, view, table, expected=expected)

    await commit_mirror(catalog, caller, "mirror-forget-table", prepare)


async def prepare_forgotten_table(
    catalog: OpenCatalog, caller: Caller, view: View, table: Identifier, *, expected: Expected = ANYTHING
) -> Prepared[None]:
    """The change that `forget_table` commits."""
    await require_open(view)
    require_expected(await find_seen(view, table_key(table)), expected, str(table))
    return (await removing_table(catalog, caller, view, table)).prepared(None)


async def forget_view(
    catalog: OpenCatalog, caller: Caller, name: Identifier, *, expected: Expected = ANYTHING
) -> None:
    """Give a view up that the remote has not."""

    async def prepare(view: View) -> Prepared[None]:
        return await prepare_forgotten_view(catalog, caller, view, name, expected=expected)

    await commit_mirror(catalog, caller, "mirror-forget-view", prepare)


async def prepare_forgotten_view(
    catalog: OpenCatalog, caller: Caller, view: View, name: Identifier, *, expected: Expected = ANYTHING
) -> Prepared[None]:
    """The change that `forget_view` commits."""
    await require_open(view)
    require_expected(await find_seen(view, view_key(name)), expected, str(name))
    return (await removing_view(catalog, caller, view, name)).prepared(None)


async def forget_namespace(catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> None:
    """Give a namespace up that the remote has not, with all that was seen in it, one by one."""
    state = await catalog.read()
    if await state.find("names", namespace_key(namespace)) is None:
        return
    kinds = (Kind.TABLE, Kind.VIEW, Kind.NAMESPACE)
    # Listed first: every step makes a new state.
    things = [each async for each in walk_contents(state, namespace, *kinds)]
    for thing in things:
        await _forget(catalog, caller, thing)
        await asyncio.sleep(0)
    await _forget_empty(catalog, caller, namespace)


async def _forget(catalog: OpenCatalog, caller: Caller, thing: Thing) -> None:
    if thing.kind is Kind.TABLE:
        await forget_table(catalog, caller, thing.name)
    elif thing.kind is Kind.VIEW:
        await forget_view(catalog, caller, thing.name)
    else:
        await _forget_empty(catalog, caller, thing.path)


async def _forget_empty(catalog: OpenCatalog, caller: Caller, namespace: Namespace) -> None:
    async def prepare(view: View) -> Prepared[None]:
        return await prepare_forgotten_namespace(catalog, caller, view, namespace)

    await commit_mirror(catalog, caller, "mirror-forget-namespace", prepare)


async def prepare_forgotten_namespace(
    catalog: OpenCatalog, caller: Caller, view: View, namespace: Namespace
) -> Prepared[None]:
    """The change that gives up a namespace that holds nothing; none when it holds something."""
    await require_open(view)
    key = namespace_key(namespace)
    value = await view.find("names", key)
    if value is None or await _holds_anything(view, namespace):
        return Prepared(None)
    state = ObjRef.unpack(value)
    (entity,) = await view.load_many(NAMESPACE, [state.id])
    gone = Collected()
    gone.add(
        make_drop_of("namespace", catalog, caller, namespace, key, state, Held(entity.id, "")).prepared()
    )
    merge(gone.changes, erasing(key, await find_seen(view, key)))
    merge(gone.changes, await leave_to_namespace(view, namespace, entity.id))
    return gone.prepared(None)


async def _holds_anything(view: View, namespace: Namespace) -> bool:
    # The scans are remembered by the view: whatever comes here meanwhile makes them untrue.
    for prefix_of in _HELD:
        if await view.scan("names", prefix=prefix_of(namespace), limit=1):
            return True
    return False


async def removing_table(catalog: OpenCatalog, caller: Caller, view: View, table: Identifier) -> Collected:
    """What gives a table up; nothing when there is none. Where it was granted on by name, the name stays."""
    gone, key = Collected(), table_key(table)
    ref, before = await find_table_ref(view, table), await find_seen(view, key)
    if ref is not None:
        dropping = await make_drop(catalog, caller, view, table, ref, is_given_up=True)
        if before is not None and before.is_by_name:
            # Its id lives on, so it is not dropped: policies and grants stay attached.
            merge(
                gone.changes,
                {"names": {key: None}, "locations": dropping.changes["locations"]},
            )
            gone.add(leaving_facade(catalog, table, dropping.entity_id))
        else:
            gone.add(dropping.prepared())
            merge(gone.changes, leave_id(dropping.drop_id, before))
        uuid = "" if before is None else before.uuid
        merge(gone.changes, await leave_restrictions(view, table, dropping.entity_id, uuid=uuid))
    merge(gone.changes, erasing(key, before))
    return gone


async def removing_view(catalog: OpenCatalog, caller: Caller, view: View, name: Identifier) -> Collected:
    """What gives a view up; nothing when there is none."""
    gone, key = Collected(), view_key(name)
    value, before = await view.find("names", key), await find_seen(view, key)
    if value is not None:
        ref = ObjRef.unpack(value)
        (state,) = await view.load_many(VIEW, [ref.id])
        path, held = (*name.namespace, name.name), Held(state.id, state.location, state.claims)
        dropping = make_drop_of("view", catalog, caller, path, key, ref, held, is_given_up=True)
        gone.add(dropping.prepared())
        merge(gone.changes, leave_id(dropping.drop_id, before))
    merge(gone.changes, erasing(key, before))
    return gone
