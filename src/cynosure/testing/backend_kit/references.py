"""References: insert, swap with rows, delete, list, and who wins."""

import asyncio

import pytest

from cynosure.common.errors import BadInput
from cynosure.persistence.spi import MAX_ID, Backend, CatalogId, ObjId, RealmId, RefKey
from cynosure.testing.backend_kit.fixtures import KitFixtures
from cynosure.testing.backend_kit.immutable_rows import BAD_TEXTS, ODD_TEXTS
from cynosure.testing.backend_kit.samples import (
    REF,
    fetch_ref,
    fetch_refs_soon,
    fixed,
    obj_key,
    reference,
    versioned,
)

RACERS = 8


def ref_key(name: str, catalog: str = "c-1", realm: str = "default") -> RefKey:
    """A reference's key."""
    return RefKey(RealmId(realm), CatalogId(catalog), name)


class ReferenceTests(KitFixtures):
    async def test_insert_ref_creates_once(self, backend: Backend, other: Backend) -> None:
        assert await backend.insert_ref(reference(1, 3, (7, 8)))
        assert not await backend.insert_ref(reference(1, 3, (7, 8)))
        assert not await other.insert_ref(reference(2))

        assert await fetch_ref(other) == reference(1, 3, (7, 8))

    async def test_fetch_refs_keeps_the_order_and_marks_missing_ones(self, backend: Backend) -> None:
        main, grants = reference(1), reference(2, key=ref_key("grants"))
        await backend.insert_ref(main)
        await backend.insert_ref(grants)

        found = await backend.fetch_refs([grants.key, ref_key("none"), main.key, grants.key])

        assert found == [grants, None, main, grants]
        assert await backend.fetch_refs([ref_key("none")]) == [None]

    async def test_references_and_objects_of_the_same_name_are_apart(self, backend: Backend) -> None:
        await backend.write([fixed(1)])

        assert await backend.fetch_refs([ref_key("node")]) == [None]
        assert await backend.list_refs() == []

    async def test_swap_ref_stores_every_field_and_its_rows(self, backend: Backend, other: Backend) -> None:
        await backend.insert_ref(reference(1))
        updated = reference(MAX_ID, 2**40, (1, 2**53 + 1, MAX_ID))._replace(created_us=99)
        rows = [fixed(10, b""), fixed(11, b"x" * 5000), fixed(12, type_="commit")]

        assert await backend.swap_ref(reference(1), updated, rows)

        assert await fetch_ref(other) == updated
        assert await other.fetch([row.key for row in rows]) == rows

    async def test_swap_ref_may_carry_no_rows_and_rows_that_exist(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1))
        await backend.write([fixed(10, b"first")])

        assert await backend.swap_ref(reference(1), reference(2))
        assert await backend.swap_ref(reference(2), reference(3), [fixed(10, b"again"), fixed(11)])

        assert await backend.fetch([obj_key(10), obj_key(11)]) == [fixed(10, b"first"), fixed(11)]

    async def test_swap_ref_from_another_head_or_generation_is_lost(self, backend: Backend) -> None:
        await backend.insert_ref(reference(5, 5))

        assert not await backend.swap_ref(reference(4, 5), reference(6, 5), [fixed(1)])
        assert not await backend.swap_ref(reference(5, 4), reference(6, 5), [fixed(2)])
        assert not await backend.swap_ref(reference(5, 6), reference(6, 6))

        assert await fetch_ref(backend) == reference(5, 5)

    async def test_only_head_and_generation_are_compared(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1, 1, (9,)))

        expected = reference(1, 1, (8, 7))._replace(created_us=123)

        assert await backend.swap_ref(expected, reference(2, 1))

    async def test_a_swap_of_a_missing_reference_is_lost(self, backend: Backend) -> None:
        assert not await backend.swap_ref(reference(1), reference(2), [fixed(1)])

        assert await fetch_ref(backend) is None

    async def test_a_move_that_was_applied_is_lost_when_repeated(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1))

        assert await backend.swap_ref(reference(1), reference(2), [fixed(10)])
        assert not await backend.swap_ref(reference(1), reference(2), [fixed(10)])

        assert await fetch_ref(backend) == reference(2)

    async def test_a_generation_bump_makes_prepared_swaps_lose(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1))

        assert await backend.swap_ref(reference(1), reference(1, 1))

        assert not await backend.swap_ref(reference(1), reference(2), [fixed(10)])
        assert await fetch_ref(backend) == reference(1, 1)

    async def test_a_swap_between_two_references_is_bad_input(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1))

        with pytest.raises(BadInput):
            await backend.swap_ref(reference(1), reference(2, key=ref_key("grants")))

        assert await backend.list_refs() == [reference(1)]

    async def test_of_many_racing_swaps_exactly_one_wins_with_its_rows(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))
        updates = [reference(100 + number) for number in range(RACERS)]
        rows = [[fixed(10 * head.head), fixed(10 * head.head + 1)] for head in updates]

        won = await asyncio.gather(
            *(
                (other if number % 2 else backend).swap_ref(reference(1), updates[number], rows[number])
                for number in range(RACERS)
            )
        )

        assert sum(won) == 1
        winner = won.index(True)
        assert await fetch_ref(other) == updates[winner]
        assert await other.fetch([row.key for row in rows[winner]]) == rows[winner]

    async def test_a_race_of_the_same_swap_with_itself_has_one_winner(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))
        rows = [fixed(10), fixed(11)]

        won = await asyncio.gather(
            *(handle.swap_ref(reference(1), reference(2), rows) for handle in (backend, other) * 4)
        )

        assert sum(won) == 1
        assert await backend.fetch([row.key for row in rows]) == rows

    async def test_delete_ref_deletes_only_where_it_was_expected(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1, 1))

        assert not await backend.delete_ref(reference(2, 1))
        assert not await backend.delete_ref(reference(1, 2))
        assert await fetch_ref(backend) == reference(1, 1)
        assert await backend.delete_ref(reference(1, 1, (4,)))
        assert not await backend.delete_ref(reference(1, 1))

        assert await fetch_ref(backend) is None
        assert not await backend.swap_ref(reference(1, 1), reference(2, 1))
        assert await backend.insert_ref(reference(7))

    async def test_of_a_racing_delete_and_swap_exactly_one_wins(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))

        is_deleted, is_moved = await asyncio.gather(
            backend.delete_ref(reference(1)), other.swap_ref(reference(1), reference(2), [fixed(2)])
        )

        assert is_deleted != is_moved
        assert await fetch_ref(backend) == (None if is_deleted else reference(2))

    async def test_list_refs_is_in_key_order_and_keeps_to_its_realm(self, backend: Backend) -> None:
        keys = [ref_key(text) for text in ODD_TEXTS]
        keys += [ref_key("main", catalog=text) for text in ("C", "c", "ä", "\uffff", "\U0001f600")]
        keys += [ref_key("main", realm=text) for text in ("Default", "default2", "defau", "\U00010000")]
        refs = [reference(number, key=key) for number, key in enumerate(reversed(keys), start=1)]
        await asyncio.gather(*(backend.insert_ref(ref) for ref in refs))

        everything = await backend.list_refs()
        of_realm = await backend.list_refs(REF.realm)

        assert everything == sorted(refs)
        assert of_realm == [ref for ref in sorted(refs) if ref.key.realm == REF.realm]
        assert await backend.list_refs(RealmId("none")) == []

    @pytest.mark.parametrize("text", BAD_TEXTS)
    async def test_a_text_that_cannot_be_part_of_a_references_key_is_bad_input(
        self, backend: Backend, text: str
    ) -> None:
        for key in (ref_key(text), ref_key("main", catalog=text), ref_key("main", realm=text)):
            ref = reference(1, key=key)
            with pytest.raises(BadInput):
                await backend.fetch_refs([REF, key])
            with pytest.raises(BadInput):
                await fetch_refs_soon(backend, [REF, key])
            with pytest.raises(BadInput):
                await backend.insert_ref(ref)
            with pytest.raises(BadInput):
                await backend.swap_ref(ref, ref._replace(head=ObjId(2)))
            with pytest.raises(BadInput):
                await backend.delete_ref(ref)
        with pytest.raises(BadInput):
            await backend.list_refs(RealmId(text))

    async def test_a_read_of_a_reference_sees_what_any_handle_was_acknowledged_before(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))
        for head in range(1, 11):
            writer, reader = (backend, other) if head % 2 else (other, backend)

            assert await writer.swap_ref(reference(head), reference(head + 1), [fixed(head)])

            assert await fetch_ref(reader) == reference(head + 1)
            assert await reader.fetch([obj_key(head)]) == [fixed(head)]

    async def test_a_read_at_once_sees_what_any_handle_was_acknowledged_before(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))
        await asyncio.gather(fetch_ref(backend), fetch_ref(other))
        answers = 0
        for head in range(1, 21):
            writer, reader = (backend, other) if head % 2 else (other, backend)

            assert await writer.swap_ref(reference(head), reference(head + 1), [fixed(head)])

            for _ in range(2):
                found = reader.fetch_refs_now([ref_key("none"), REF])
                if found is not None:
                    assert found == [None, reference(head + 1)]
                    answers += 1
        if not answers:
            pytest.skip("This backend does not read references at once")
        assert await other.insert_ref(reference(1, key=ref_key("none")))
        assert backend.fetch_refs_now([ref_key("none")]) in ([reference(1, key=ref_key("none"))], None)
        assert await other.delete_ref(reference(21))
        assert backend.fetch_refs_now([REF]) in ([None], None)

    async def test_a_read_at_once_sees_what_was_written_while_it_is_asked_again_and_again(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))
        await fetch_ref(other)
        seen: list[int] = []

        async def move() -> None:
            for head in range(1, 21):
                assert await backend.swap_ref(reference(head), reference(head + 1))
                found = other.fetch_refs_now([REF])
                if found is not None:
                    assert found == [reference(head + 1)]

        moving = asyncio.create_task(move())
        while not moving.done():
            (current,) = other.fetch_refs_now([REF]) or await other.fetch_refs([REF])
            assert current is not None
            seen.append(current.head)
            await asyncio.sleep(0)
        await moving

        assert seen == sorted(seen)

    async def test_writes_to_different_rows_do_not_disturb_each_other(
        self, backend: Backend, other: Backend
    ) -> None:
        refs = [reference(1, key=ref_key(f"r{number}")) for number in range(6)]
        await asyncio.gather(*(backend.insert_ref(ref) for ref in refs))

        won = await asyncio.gather(
            *(
                (other if number % 2 else backend).swap_ref(
                    ref, ref._replace(head=ObjId(2)), [fixed(number + 1)]
                )
                for number, ref in enumerate(refs)
            ),
            *(backend.insert(versioned(number, "a")) for number in range(1, 5)),
            *(other.insert(versioned(number, "a")) for number in range(11, 15)),
        )

        assert all(won)
        assert [ref.head for ref in await backend.list_refs()] == [2] * 6
