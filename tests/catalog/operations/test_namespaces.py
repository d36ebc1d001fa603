import asyncio

import msgspec
import pytest

from cynosure.auth.committing import commit_part
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.errors import (
    CatalogClosed,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    Unprocessable,
)
from cynosure.catalog.names import CLOSED, Identifier, children_prefix, namespace_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_namespace import load_namespace, namespace_exists
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    update_namespace_properties,
)
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.index import decode_id_key, encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.testing.small_catalog import ROOT, SCHEMA

pytestmark = pytest.mark.anyio


async def newest_changes(catalog: OpenCatalog) -> list[Change]:
    record = (await catalog.read()).commit.record
    return [change for request in record.requests for change in request.changes]


async def test_a_namespace_is_found_by_name_and_by_id(catalog: OpenCatalog) -> None:
    created = await create_namespace(catalog, ROOT, ("a",), {"k": "v"})

    state = await catalog.read()

    assert await load_namespace(catalog, ROOT, ("a",)) == created
    assert await state.find("ids", encode_id_key(created.id)) == namespace_key(("a",))


async def test_the_feed_tells_what_became_of_a_namespace(catalog: OpenCatalog) -> None:
    created = await create_namespace(catalog, ROOT, ("a",), {})
    told = await newest_changes(catalog)
    await update_namespace_properties(catalog, ROOT, ("a",), PropertiesUpdate(updates={"k": "v"}))
    told += await newest_changes(catalog)
    await drop_namespace(catalog, ROOT, ("a",))
    told += await newest_changes(catalog)

    assert [change.kind for change in told] == ["namespace-created", "namespace-updated", "namespace-dropped"]
    for change in told:
        assert msgspec.msgpack.decode(change.detail) == {"id": created.id, "path": ["a"]}
    assert [change.before for change in told[1:]] == [change.after for change in told[:-1]]


async def test_a_namespace_keeps_its_id_when_its_properties_change(catalog: OpenCatalog) -> None:
    created = await create_namespace(catalog, ROOT, ("a",), {"k": "v", "gone": "x"})

    done = await update_namespace_properties(
        catalog, ROOT, ("a",), PropertiesUpdate(removals=("gone", "never"), updates={"k": "w"})
    )

    changed = await load_namespace(catalog, ROOT, ("a",))
    assert (done.updated, done.removed, done.missing) == (["k"], ["gone"], ["never"])
    assert (changed.id, changed.created_us, changed.properties) == (
        created.id,
        created.created_us,
        {"k": "w"},
    )
    assert changed.updated_us >= created.updated_us


async def test_properties_that_are_as_wanted_already_commit_nothing(catalog: OpenCatalog) -> None:
    await create_namespace(catalog, ROOT, ("a",), {"k": "v"})
    before = (await catalog.read()).commit_id

    done = await update_namespace_properties(
        catalog, ROOT, ("a",), PropertiesUpdate(removals=("x",), updates={"k": "v"})
    )

    assert (done.updated, done.missing) == (["k"], ["x"])
    assert (await catalog.read()).commit_id == before


async def test_setting_and_removing_the_same_property_is_refused(catalog: OpenCatalog) -> None:
    with pytest.raises(Unprocessable):
        await update_namespace_properties(
            catalog, ROOT, ("ns",), PropertiesUpdate(removals=("k",), updates={"k": "v"})
        )


async def test_concurrent_updates_of_properties_are_all_kept(catalog: OpenCatalog) -> None:
    await asyncio.gather(
        *(
            update_namespace_properties(catalog, ROOT, ("ns",), PropertiesUpdate(updates={f"k{n}": "v"}))
            for n in range(8)
        )
    )

    properties = (await load_namespace(catalog, ROOT, ("ns",))).properties
    assert properties == {f"k{n}": "v" for n in range(8)}


async def test_of_many_racing_creators_one_wins(catalog: OpenCatalog) -> None:
    outcomes = await asyncio.gather(
        *(create_namespace(catalog, ROOT, ("a",), {}) for _ in range(8)), return_exceptions=True
    )

    assert sum(isinstance(outcome, NamespaceExists) for outcome in outcomes) == 7


async def test_a_dropped_namespace_can_be_found_for_undrop(catalog: OpenCatalog) -> None:
    created = await create_namespace(catalog, ROOT, ("ns", "b"), {"k": "v"})
    live = await (await catalog.read()).find("names", namespace_key(("ns", "b")))

    await drop_namespace(catalog, ROOT, ("ns", "b"))

    state = await catalog.read()
    ((key, value),) = await state.scan("dropped", limit=10)
    (dropped,) = await state.load_many(DROPPED, [ObjRef.unpack(value).id])
    assert (dropped.kind, dropped.entity_id, dropped.path) == ("namespace", created.id, ("ns", "b"))
    assert dropped.state.pack() == live
    assert dropped.principal == ROOT.principal
    assert decode_id_key(key) == ObjRef.unpack(value).id
    assert await state.find("ids", encode_id_key(created.id)) is None
    with pytest.raises(NoSuchNamespace):
        await namespace_exists(catalog, ROOT, ("ns", "b"))


async def test_a_namespace_with_anything_in_it_is_not_dropped(catalog: OpenCatalog) -> None:
    await create_namespace(catalog, ROOT, ("a",), {})
    await create_namespace(catalog, ROOT, ("a", "b"), {})
    await create_table(catalog, ROOT, CreateTable(("a", "b"), "t", SCHEMA))

    for namespace in (("a",), ("a", "b")):
        with pytest.raises(NamespaceNotEmpty):
            await drop_namespace(catalog, ROOT, namespace)
    await drop_table(catalog, ROOT, Identifier(("a", "b"), "t"))
    await drop_namespace(catalog, ROOT, ("a", "b"))
    await drop_namespace(catalog, ROOT, ("a",))

    assert await (await catalog.read()).scan("names", prefix=children_prefix(("a",)), limit=1) == []


async def test_a_namespace_is_never_dropped_from_under_what_is_created_in_it(catalog: OpenCatalog) -> None:
    for number in range(20):
        parent = (f"race{number}",)
        await create_namespace(catalog, ROOT, parent, {})
        dropped, *created = await asyncio.gather(
            drop_namespace(catalog, ROOT, parent),
            create_namespace(catalog, ROOT, (*parent, "child"), {}),
            create_table(catalog, ROOT, CreateTable(parent, "t", SCHEMA)),
            return_exceptions=True,
        )

        state = await catalog.read()
        is_there = await state.find("names", namespace_key(parent)) is not None
        assert is_there == isinstance(dropped, NamespaceNotEmpty)
        for outcome in created:
            assert isinstance(outcome, NoSuchNamespace) == (not is_there), outcome


async def test_nothing_is_written_to_a_closed_catalog(catalog: OpenCatalog) -> None:
    created = await create_namespace(catalog, ROOT, ("a",), {})

    async def close(view: View) -> Prepared[None]:
        return Prepared(None, {"names": {CLOSED: ObjRef(created.id, "namespace").pack()}})

    await commit_part(catalog.committer, ROOT, "close", close)

    for attempt in (
        create_namespace(catalog, ROOT, ("b",), {}),
        drop_namespace(catalog, ROOT, ("a",)),
        update_namespace_properties(catalog, ROOT, ("a",), PropertiesUpdate(updates={"k": "v"})),
    ):
        with pytest.raises(CatalogClosed):
            await attempt
