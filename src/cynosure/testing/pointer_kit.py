"""What every remote of pointers must do: the promises of `cynosure.federation.pointers`, as tests.

A binding is a subclass with one fixture, on a real remote:

    class TestMyPointers(PointerKit):
        @pytest.fixture
        async def stage(self) -> AsyncIterator[PointerStage]:
            yield PointerStage(my_pointers, make_foreign, open_losing, open_nowhere)

Every test has a namespace of its own, so one remote may serve them all. No metadata file is read or written:
pointers lead nowhere here.

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio. A maintainer must not break: no test
names a kind of remote.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import ClassVar, Final, NamedTuple

import pytest

from cynosure.catalog.errors import NamespaceNotEmpty, NoSuchNamespace, NoSuchTable, TableExists
from cynosure.catalog.names import Identifier, Namespace
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.federation.errors import NotIceberg, RemoteConflict, RemoteUnavailable
from cynosure.federation.pointers import Pointer, PointerCatalog

COLUMNS: Final = {"id": "bigint", "note": "string"}
RACERS: Final = 6


class PointerStage(NamedTuple):
    """What a binding supplies."""

    pointers: PointerCatalog
    make_foreign: Callable[[Identifier], Awaitable[None]]
    """Makes a table that is not of Iceberg's."""
    open_losing: Callable[[], Awaitable[PointerCatalog]]
    """A client of the same remote: its next swap is carried out, and the answer to it lost."""
    open_nowhere: Callable[[], PointerCatalog]
    """A client of a remote that is not there."""


def place(name: str) -> Pointer:
    """A pointer that nothing else has."""
    table = f"s3://bucket/kit/{uuid.uuid4().hex}"
    return Pointer(f"{table}/metadata/{name}.metadata.json", location=table)


@pytest.mark.anyio
class PointerKit:
    """Tests that hold for all remotes of pointers."""

    is_conditional: ClassVar[bool] = True
    """Whether the remote that the tests have enforces the condition of a swap. All real ones must."""

    @pytest.fixture
    def stage(self) -> PointerStage:
        """The one thing that a binding supplies."""
        raise LookupError("A binding of the pointer kit overrides the fixture stage")

    async def test_a_remote_that_is_well_says_so(self, stage: PointerStage) -> None:
        await stage.pointers.check()

    async def test_a_created_pointer_is_found(self, stage: PointerStage) -> None:
        table, pointer = Identifier(await _make_namespace(stage), "orders"), place("first")

        await stage.pointers.create(table, pointer, COLUMNS)
        found = await stage.pointers.find(table)

        assert found.metadata_location == pointer.metadata_location
        assert found.location in (None, pointer.location)

    async def test_a_name_is_taken_once(self, stage: PointerStage) -> None:
        table, first = Identifier(await _make_namespace(stage), "orders"), place("first")
        await stage.pointers.create(table, first, COLUMNS)

        with pytest.raises(TableExists):
            await stage.pointers.create(table, place("second"), COLUMNS)

        assert (await stage.pointers.find(table)).metadata_location == first.metadata_location

    async def test_of_many_who_create_a_table_one_does(self, stage: PointerStage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        wanted = [place(f"by-{number}") for number in range(RACERS)]

        done = await asyncio.gather(
            *(stage.pointers.create(table, each, COLUMNS) for each in wanted), return_exceptions=True
        )

        winners = [each for each, what in zip(wanted, done, strict=True) if isinstance(what, Pointer)]
        assert [each.metadata_location for each in winners] == [
            (await stage.pointers.find(table)).metadata_location
        ]
        assert sum(isinstance(what, TableExists) for what in done) == RACERS - 1, done

    async def test_nothing_is_created_in_a_namespace_that_is_missing(self, stage: PointerStage) -> None:
        with pytest.raises(NoSuchNamespace):
            await stage.pointers.create(Identifier((_fresh(),), "orders"), place("first"), COLUMNS)

    async def test_a_swap_moves_the_pointer_it_expects(self, stage: PointerStage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        await stage.pointers.create(table, place("first"), COLUMNS)
        first, second = await stage.pointers.find(table), place("second")

        await stage.pointers.swap(table, first, second, {**COLUMNS, "more": "int"})

        assert (await stage.pointers.find(table)).metadata_location == second.metadata_location

    async def test_a_swap_of_what_was_created_needs_no_look(self, stage: PointerStage) -> None:
        table, second, third = Identifier(await _make_namespace(stage), "orders"), place("2"), place("3")
        first = await stage.pointers.create(table, place("1"), COLUMNS)

        swapped = await stage.pointers.swap(table, first, second, COLUMNS)
        await stage.pointers.swap(table, swapped, third, COLUMNS)

        assert (await stage.pointers.find(table)).metadata_location == third.metadata_location

    async def test_a_swap_of_an_older_pointer_is_a_conflict(self, stage: PointerStage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        await stage.pointers.create(table, place("first"), COLUMNS)
        first, second = await stage.pointers.find(table), place("second")
        await stage.pointers.swap(table, first, second, COLUMNS)

        with pytest.raises(RemoteConflict):
            await stage.pointers.swap(table, first, place("third"), COLUMNS)

        assert (await stage.pointers.find(table)).metadata_location == second.metadata_location

    async def test_of_many_who_swap_one_pointer_one_does(self, stage: PointerStage) -> None:
        if not self.is_conditional:
            return
        table = Identifier(await _make_namespace(stage), "orders")
        await stage.pointers.create(table, place("first"), COLUMNS)
        first = await stage.pointers.find(table)
        wanted = [place(f"by-{number}") for number in range(RACERS)]

        done = await asyncio.gather(
            *(stage.pointers.swap(table, first, each, COLUMNS) for each in wanted), return_exceptions=True
        )

        winners = [each for each, what in zip(wanted, done, strict=True) if isinstance(what, Pointer)]
        assert [each.metadata_location for each in winners] == [
            (await stage.pointers.find(table)).metadata_location
        ]
        assert sum(isinstance(what, RemoteConflict) for what in done) == RACERS - 1, done

    async def test_a_swap_whose_answer_is_lost_is_unknown(self, stage: PointerStage) -> None:
        table = Identifier(await _make_namespace(stage), "orders")
        await stage.pointers.create(table, place("first"), COLUMNS)
        first, second = await stage.pointers.find(table), place("second")
        losing = await stage.open_losing()

        with pytest.raises(OutcomeUnknown):
            await losing.swap(table, first, second, COLUMNS)

        await losing.close()
        assert (await stage.pointers.find(table)).metadata_location == second.metadata_location

    async def test_a_missing_table_is_told_as_one(self, stage: PointerStage) -> None:
        namespace = await _make_namespace(stage)
        missing = Identifier(namespace, "missing")

        for attempt in (
            stage.pointers.find(missing),
            stage.pointers.swap(missing, place("first"), place("second"), COLUMNS),
            stage.pointers.drop(missing),
            stage.pointers.rename(missing, Identifier(namespace, "other")),
            stage.pointers.find(Identifier((_fresh(),), "orders")),
            stage.pointers.find(Identifier((*namespace, "deeper"), "orders")),
        ):
            with pytest.raises(NoSuchTable):
                await attempt

    async def test_a_dropped_table_is_gone_and_its_name_free(self, stage: PointerStage) -> None:
        table, again = Identifier(await _make_namespace(stage), "orders"), place("again")
        await stage.pointers.create(table, place("first"), COLUMNS)

        await stage.pointers.drop(table)

        with pytest.raises(NoSuchTable):
            await stage.pointers.find(table)
        await stage.pointers.create(table, again, COLUMNS)
        assert (await stage.pointers.find(table)).metadata_location == again.metadata_location

    async def test_a_renamed_table_keeps_its_pointer(self, stage: PointerStage) -> None:
        namespace, other = await _make_namespace(stage), await _make_namespace(stage)
        source, target, pointer = Identifier(namespace, "source"), Identifier(other, "target"), place("1")
        await stage.pointers.create(source, pointer, COLUMNS)

        await stage.pointers.rename(source, target)

        found = await stage.pointers.find(target)
        assert found.metadata_location == pointer.metadata_location
        with pytest.raises(NoSuchTable):
            await stage.pointers.find(source)
        await stage.pointers.swap(target, found, place("2"), COLUMNS)

    async def test_a_table_is_not_renamed_to_a_name_that_is_taken_or_nowhere(
        self, stage: PointerStage
    ) -> None:
        namespace = await _make_namespace(stage)
        source, target, first = Identifier(namespace, "source"), Identifier(namespace, "target"), place("1")
        await stage.pointers.create(source, first, COLUMNS)
        await stage.pointers.create(target, place("2"), COLUMNS)

        with pytest.raises(TableExists):
            await stage.pointers.rename(source, target)
        with pytest.raises(NoSuchNamespace):
            await stage.pointers.rename(source, Identifier((_fresh(),), "target"))

        assert (await stage.pointers.find(source)).metadata_location == first.metadata_location

    async def test_tables_are_listed_in_pages(self, stage: PointerStage) -> None:
        namespace = await _make_namespace(stage)
        names = [f"t{number:02}" for number in range(25)]
        for name in names:
            await stage.pointers.create(Identifier(namespace, name), place(name), COLUMNS)

        found: list[str] = []
        sizes: list[int] = []
        token = None
        while True:
            page = await stage.pointers.list_tables(namespace, token=token, size=10)
            found += page.names
            sizes.append(len(page.names))
            token = page.next_token
            if token is None:
                break

        assert sorted(found) == names
        assert max(sizes) <= 10

    async def test_tables_of_other_formats_are_not_shown(self, stage: PointerStage) -> None:
        namespace = await _make_namespace(stage)
        ours, foreign = Identifier(namespace, "ours"), Identifier(namespace, "foreign")
        await stage.pointers.create(ours, place("ours"), COLUMNS)
        await stage.make_foreign(foreign)

        page = await stage.pointers.list_tables(namespace, token=None, size=10)

        assert page.names == ["ours"]
        with pytest.raises(NotIceberg):
            await stage.pointers.find(foreign)
        with pytest.raises(NoSuchTable):
            await stage.pointers.drop(foreign)
        with pytest.raises(NoSuchTable):
            await stage.pointers.rename(foreign, Identifier(namespace, "renamed"))
        with pytest.raises(TableExists):
            await stage.pointers.create(foreign, place("instead"), COLUMNS)
        with pytest.raises(TableExists):
            await stage.pointers.rename(ours, foreign)

    async def test_a_namespace_with_a_table_of_another_format_is_not_empty(self, stage: PointerStage) -> None:
        namespace = await _make_namespace(stage)
        await stage.make_foreign(Identifier(namespace, "foreign"))

        with pytest.raises(NamespaceNotEmpty):
            await stage.pointers.drop_namespace(namespace)

    async def test_namespaces_are_listed_in_pages(self, stage: PointerStage) -> None:
        names = {(await _make_namespace(stage))[0] for _ in range(3)}
        whole = await stage.pointers.list_namespaces((), token=None, size=100_000)
        # What earlier tests left is listed too: in few pages, however much that is.
        size = max(2, len(whole.names) // 3)

        found: list[str] = []
        token = None
        while True:
            page = await stage.pointers.list_namespaces((), token=token, size=size)
            assert len(page.names) <= size
            found += page.names
            token = page.next_token
            if token is None:
                break

        assert names <= set(found)
        assert len(found) == len(set(found))

    async def test_a_namespace_keeps_what_it_is_not_told_to_change(self, stage: PointerStage) -> None:
        namespace = (_fresh(),)
        await stage.pointers.create_namespace(namespace, {"one": "1", "two": "2"})

        await stage.pointers.update_namespace(namespace, removals=["two"], updates={"three": "3"})
        found = await stage.pointers.load_namespace(namespace)

        assert {name: found.get(name) for name in ("one", "two", "three")} == {
            "one": "1",
            "two": None,
            "three": "3",
        }
        await stage.pointers.update_namespace(namespace, removals=["one", "three"], updates={})
        assert "one" not in await stage.pointers.load_namespace(namespace)

    async def test_a_remote_that_is_not_there_is_unavailable(self, stage: PointerStage) -> None:
        nowhere = stage.open_nowhere()
        table = Identifier(("anything",), "orders")
        attempts: list[Awaitable[object]] = [
            nowhere.check(),
            nowhere.find(table),
            nowhere.swap(table, place("first"), place("second"), COLUMNS),
            nowhere.create_namespace(table.namespace, {}),
        ]

        done = await asyncio.gather(*attempts, return_exceptions=True)

        assert [type(each) for each in done] == [RemoteUnavailable] * len(attempts)
        for each in done:
            assert isinstance(each, CynosureError)
        await nowhere.close()


def _fresh() -> str:
    return f"kit_{uuid.uuid4().hex[:12]}"


async def _make_namespace(stage: PointerStage) -> Namespace:
    namespace = (_fresh(),)
    await stage.pointers.create_namespace(namespace, {})
    return namespace
