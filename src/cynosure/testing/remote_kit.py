"""What every remote catalog must do: the promises of `cynosure.federation.remote.RemoteCatalog`, as tests.

A binding is a subclass with one fixture, on a real remote:

    class TestMyRemote(RemoteKit):
        @pytest.fixture
        async def stage(self) -> AsyncIterator[Stage]:
            yield Stage(my_remote, "s3://bucket/place")

Every test has a namespace of its own, so one remote may serve them all. What a kind of remote cannot do
(`Abilities`) is not asked of it.

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio. A maintainer must not break: no test
names a kind of remote, and every refusal is looked for beside something that is allowed.
"""

from typing import ClassVar

import pytest

from cynosure.catalog.errors import (
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)
from cynosure.catalog.names import Identifier, Namespace
from cynosure.common.errors import Conflict, NotFound
from cynosure.federation.errors import NotOffered, RemoteConflict
from cynosure.federation.remote import UNCHANGED, NamesPage, NewTable, RemoteTable, RemoteView
from cynosure.iceberg.requirements import AssertCurrentSchemaId
from cynosure.testing.remote_samples import (
    Stage,
    changing,
    creating,
    fresh_name,
    plan_table,
    plan_view,
    replacing,
    setting,
    widening,
)

__all__ = ["RemoteKit", "Stage", "list_all"]


async def list_all(stage: Stage, namespace: Namespace, size: int = 100) -> list[NamesPage]:
    """All pages of the tables of a namespace."""
    pages = [await stage.remote.list_tables(namespace, token=None, size=size)]
    while (token := pages[-1].next_token) is not None:
        pages.append(await stage.remote.list_tables(namespace, token=token, size=size))
        assert len(pages) < 100, "pages without end"
    return pages


@pytest.mark.anyio
class RemoteKit:
    """Tests that hold for all remotes."""

    odd_names: ClassVar[tuple[str, ...]] = ("with space", "ünïcödé", "a+b&c=d", "100%", "dots.in.it")
    """A binding takes away what its remote cannot have."""
    makes_namespaces: ClassVar[bool] = False
    """Whether the remote makes the namespace of a new table by itself."""
    lists_missing: ClassVar[bool] = False
    """Whether a namespace that is not there is listed as an empty one."""
    chooses_places: ClassVar[bool] = False
    """Whether the remote decides where tables are, whatever was asked for."""
    keeps_view_files: ClassVar[bool] = True
    """Whether the file of a dropped view stays; where not, two views may be of one file."""

    @pytest.fixture
    def stage(self) -> Stage:
        """The one thing that a binding supplies."""
        raise LookupError("A binding of the remote kit overrides the fixture stage")

    async def test_a_remote_that_is_well_says_so(self, stage: Stage) -> None:
        await stage.remote.check()

    # --- namespaces ------------------------------------------------------------------------------

    async def test_a_created_namespace_is_listed_with_its_properties(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage, owner="kit")

        loaded = await stage.remote.load_namespace(namespace)
        listed = await stage.remote.list_namespaces((), token=None, size=10_000)

        assert loaded["owner"] == "kit"
        assert namespace[0] in listed.names

    async def test_a_namespace_is_created_once(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage)

        with pytest.raises(NamespaceExists):
            await stage.remote.create_namespace(namespace, {})

    async def test_properties_are_set_and_removed(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage, one="1", two="2")

        await stage.remote.update_namespace(namespace, removals=["one"], updates={"two": "3", "four": "4"})
        loaded = await stage.remote.load_namespace(namespace)

        assert "one" not in loaded
        assert (loaded["two"], loaded["four"]) == ("3", "4")

    async def test_only_an_empty_namespace_is_dropped(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage)
        table = Identifier(namespace, "orders")
        await stage.remote.create_table(plan_table(stage, table))

        with pytest.raises(NamespaceNotEmpty):
            await stage.remote.drop_namespace(namespace)
        await stage.remote.drop_table(table, is_purge=False)
        await stage.remote.drop_namespace(namespace)

        with pytest.raises(NoSuchNamespace):
            await stage.remote.load_namespace(namespace)

    async def test_a_missing_namespace_is_told_as_one(self, stage: Stage) -> None:
        missing = (fresh_name("missing"),)

        with pytest.raises(NoSuchNamespace):
            await stage.remote.load_namespace(missing)
        with pytest.raises(NoSuchNamespace):
            await stage.remote.drop_namespace(missing)
        if not self.lists_missing:
            with pytest.raises(NoSuchNamespace):
                await stage.remote.list_tables(missing, token=None, size=10)
        if not self.makes_namespaces:
            with pytest.raises(NoSuchNamespace):
                await stage.remote.create_table(plan_table(stage, Identifier(missing, "orders")))

    async def test_nested_namespaces_are_listed_below_their_parent(self, stage: Stage) -> None:
        if not stage.remote.abilities.has_nested_namespaces:
            return
        outer = await _make_namespace(stage)
        await stage.remote.create_namespace((*outer, "inner"), {})
        table = Identifier((*outer, "inner"), "orders")
        await stage.remote.create_table(plan_table(stage, table))

        assert (await stage.remote.list_namespaces(outer, token=None, size=10)).names == ["inner"]
        assert (await stage.remote.list_tables(table.namespace, token=None, size=10)).names == ["orders"]
        assert isinstance(await stage.remote.load_table(table), RemoteTable)

    # --- tables ----------------------------------------------------------------------------------

    async def test_a_created_table_is_what_was_asked_for(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        wanted = plan_table(stage, table, owner="kit")

        created = await stage.remote.create_table(wanted)
        loaded = await _load(stage, table)

        assert loaded.metadata.table_uuid == created.metadata.table_uuid
        assert self.chooses_places or loaded.metadata.location == wanted.metadata.location
        assert loaded.metadata.properties["owner"] == "kit"
        assert [field.name for field in loaded.metadata.current_schema().fields] == ["id", "note"]
        assert loaded.tag.metadata_location

    async def test_a_table_is_created_once(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        await stage.remote.create_table(plan_table(stage, table))

        with pytest.raises(TableExists):
            await stage.remote.create_table(plan_table(stage, table))

    async def test_a_staged_table_is_there_only_once_it_is_committed(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        planned = plan_table(stage, table)
        staged = await stage.remote.create_table(
            NewTable(table=table, metadata=planned.metadata, is_staged=True)
        )
        with pytest.raises(NoSuchTable):
            await stage.remote.load_table(table)

        created = await stage.remote.commit_table(creating(table, staged))

        assert self.chooses_places or created.metadata.location == planned.metadata.location
        assert (await _load(stage, table)).metadata.table_uuid == created.metadata.table_uuid
        with pytest.raises(Conflict):
            await stage.remote.commit_table(creating(table, staged))

    async def test_a_missing_table_is_told_as_one(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage)
        missing = Identifier(namespace, "missing")

        with pytest.raises(NoSuchTable):
            await stage.remote.load_table(missing)
        with pytest.raises(NoSuchTable):
            await stage.remote.load_table(Identifier((fresh_name("missing"),), "orders"))
        with pytest.raises(NoSuchTable):
            await stage.remote.drop_table(missing, is_purge=False)
        with pytest.raises(NoSuchTable):
            await stage.remote.rename_table(missing, Identifier(namespace, "other"))

    async def test_a_known_version_is_unchanged_until_it_is_changed(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        await stage.remote.create_table(plan_table(stage, table))
        first = await _load(stage, table)

        assert await stage.remote.load_table(table, first.tag) == UNCHANGED
        await stage.remote.commit_table(setting(table, first, color="red"))
        second = await stage.remote.load_table(table, first.tag)

        assert isinstance(second, RemoteTable)
        assert second.metadata.properties["color"] == "red"
        assert await stage.remote.load_table(table, second.tag) == UNCHANGED

    async def test_a_change_answers_with_what_it_made(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        base = await stage.remote.create_table(plan_table(stage, table))

        committed = await stage.remote.commit_table(setting(table, base, color="red"))
        loaded = await _load(stage, table)

        assert committed.metadata.properties["color"] == "red"
        assert loaded.metadata.properties["color"] == "red"
        assert committed.tag.metadata_location != base.tag.metadata_location

    async def test_a_requirement_that_does_not_hold_stops_a_change(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        base = await stage.remote.create_table(plan_table(stage, table))
        wrong = changing(
            table, base, [AssertCurrentSchemaId(7)], {"action": "set-properties", "updates": {"color": "red"}}
        )

        with pytest.raises(Conflict):
            await stage.remote.commit_table(wrong)

        assert "color" not in (await _load(stage, table)).metadata.properties

    async def test_of_two_changes_to_one_version_the_second_is_refused(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        base = await stage.remote.create_table(plan_table(stage, table))
        await stage.remote.commit_table(widening(table, base, "first"))

        with pytest.raises(RemoteConflict):
            await stage.remote.commit_table(widening(table, base, "second"))

        names = [field.name for field in (await _load(stage, table)).metadata.current_schema().fields]
        assert names == ["id", "note", "first"]

    async def test_a_dropped_table_is_not_changed(self, stage: Stage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        base = await stage.remote.create_table(plan_table(stage, table))
        await stage.remote.drop_table(table, is_purge=False)

        with pytest.raises((NotFound, Conflict)):
            await stage.remote.commit_table(setting(table, base, color="red"))
        with pytest.raises(NoSuchTable):
            await stage.remote.load_table(table)

    async def test_a_renamed_table_is_the_same_under_another_name(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage)
        source, target = Identifier(namespace, "source"), Identifier(namespace, "target")
        created = await stage.remote.create_table(plan_table(stage, source))

        await stage.remote.rename_table(source, target)

        assert (await _load(stage, target)).metadata.table_uuid == created.metadata.table_uuid
        with pytest.raises(NoSuchTable):
            await stage.remote.load_table(source)
        await stage.remote.create_table(plan_table(stage, source))
        with pytest.raises(TableExists):
            await stage.remote.rename_table(source, target)

    async def test_a_table_is_registered_by_its_metadata_file(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage)
        source, target = Identifier(namespace, "source"), Identifier(namespace, "target")
        created = await stage.remote.create_table(plan_table(stage, source))
        await stage.remote.drop_table(source, is_purge=False)
        location = created.tag.metadata_location
        assert location

        registered = await stage.remote.register_table(target, location, is_overwrite=False)

        assert registered.metadata.table_uuid == created.metadata.table_uuid
        assert (await _load(stage, target)).metadata.table_uuid == created.metadata.table_uuid
        with pytest.raises(TableExists):
            await stage.remote.register_table(target, location, is_overwrite=False)

    async def test_tables_are_listed_in_pages(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage)
        names = [f"t{number:02}" for number in range(25)]
        for name in names:
            await stage.remote.create_table(plan_table(stage, Identifier(namespace, name)))

        pages = await list_all(stage, namespace, 10)

        assert all(len(page.names) <= 10 for page in pages)
        assert sorted(name for page in pages for name in page.names) == names

    async def test_names_may_be_odd(self, stage: Stage) -> None:
        if stage.remote.abilities.names != "any":
            return
        namespace = await _make_namespace(stage)
        for name in self.odd_names:
            await stage.remote.create_table(plan_table(stage, Identifier(namespace, name), said=name))

        [page] = await list_all(stage, namespace)

        assert sorted(page.names) == sorted(self.odd_names)
        for name in self.odd_names:
            assert (await _load(stage, Identifier(namespace, name))).metadata.properties["said"] == name

    async def test_a_transaction_changes_all_tables_or_none(self, stage: Stage) -> None:
        if not stage.remote.abilities.has_transactions:
            return
        namespace = await _make_namespace(stage)
        tables = [Identifier(namespace, name) for name in ("one", "two")]
        bases = [await stage.remote.create_table(plan_table(stage, table)) for table in tables]
        good = [setting(table, base, color="red") for table, base in zip(tables, bases, strict=True)]
        bad = changing(
            tables[1],
            bases[1],
            [AssertCurrentSchemaId(7)],
            {"action": "set-properties", "updates": {"a": "b"}},
        )

        with pytest.raises(Conflict):
            await stage.remote.commit_transaction([good[0], bad])
        assert "color" not in (await _load(stage, tables[0])).metadata.properties
        await stage.remote.commit_transaction(good)

        for table in tables:
            assert (await _load(stage, table)).metadata.properties["color"] == "red"

    # --- views -----------------------------------------------------------------------------------

    async def test_views_are_created_replaced_and_dropped(self, stage: Stage) -> None:
        if not stage.remote.abilities.has_views:
            return
        view = Identifier(await _make_namespace(stage), "report")
        await stage.remote.create_view(view, plan_view(stage, view))
        with pytest.raises(ViewExists):
            await stage.remote.create_view(view, plan_view(stage, view))
        first = await _load_view(stage, view)
        assert await stage.remote.load_view(view, first.tag) == UNCHANGED

        replaced = await stage.remote.commit_view(replacing(view, first))
        second = await stage.remote.load_view(view, first.tag)

        assert isinstance(second, RemoteView)
        assert second.metadata.current_version_id == replaced.metadata.current_version_id
        assert second.metadata.current_version_id != first.metadata.current_version_id
        assert (await stage.remote.list_views(view.namespace, token=None, size=10)).names == ["report"]
        assert (await stage.remote.list_tables(view.namespace, token=None, size=10)).names == []
        await stage.remote.drop_view(view)
        with pytest.raises(NoSuchView):
            await stage.remote.load_view(view)
        with pytest.raises(NoSuchView):
            await stage.remote.drop_view(view)

    async def test_a_renamed_view_is_the_same_under_another_name(self, stage: Stage) -> None:
        if not stage.remote.abilities.has_views:
            return
        namespace = await _make_namespace(stage)
        source, target = Identifier(namespace, "source"), Identifier(namespace, "target")
        created = await stage.remote.create_view(source, plan_view(stage, source))

        await stage.remote.rename_view(source, target)

        assert (await _load_view(stage, target)).metadata.view_uuid == created.metadata.view_uuid
        with pytest.raises(NoSuchView):
            await stage.remote.rename_view(source, Identifier(namespace, "third"))

    async def test_a_view_is_registered_by_its_metadata_file(self, stage: Stage) -> None:
        namespace = await _make_namespace(stage)
        source, target = Identifier(namespace, "source"), Identifier(namespace, "target")
        if not stage.remote.abilities.registers_views:
            with pytest.raises(NotOffered):
                await stage.remote.register_view(target, f"{stage.place}/v1.metadata.json")
            return
        created = await stage.remote.create_view(source, plan_view(stage, source))
        if self.keeps_view_files:
            await stage.remote.drop_view(source)
        location = created.tag.metadata_location
        assert location

        registered = await stage.remote.register_view(target, location)

        assert registered.metadata.view_uuid == created.metadata.view_uuid
        assert registered.tag.metadata_location == location
        assert (await _load_view(stage, target)).metadata.view_uuid == created.metadata.view_uuid
        with pytest.raises(ViewExists):
            await stage.remote.register_view(target, location)
        if not self.makes_namespaces:
            missing = Identifier((fresh_name("missing"),), "report")
            with pytest.raises(NoSuchNamespace):
                await stage.remote.register_view(missing, location)


async def _make_namespace(stage: Stage, **properties: str) -> Namespace:
    # A remote tells what it can do once it was asked.
    await stage.remote.check()
    namespace = (fresh_name(),)
    await stage.remote.create_namespace(namespace, properties)
    return namespace


async def _load(stage: Stage, table: Identifier) -> RemoteTable:
    loaded = await stage.remote.load_table(table)
    assert isinstance(loaded, RemoteTable)
    return loaded


async def _load_view(stage: Stage, view: Identifier) -> RemoteView:
    loaded = await stage.remote.load_view(view)
    assert isinstance(loaded, RemoteView)
    return loaded
