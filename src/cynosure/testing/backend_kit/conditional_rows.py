"""Rows with a version token: insert, swap, delete_if, and who wins."""

import asyncio

import pytest

from cynosure.common.errors import BadInput
from cynosure.persistence.spi import Backend
from cynosure.testing.backend_kit.fixtures import KitFixtures
from cynosure.testing.backend_kit.samples import fetch_row, fixed, obj_key, versioned

KEY = versioned(1, "a").key
RACERS = 8


class ConditionalRowTests(KitFixtures):
    async def test_insert_creates_a_row_once(self, backend: Backend, other: Backend) -> None:
        assert await backend.insert(versioned(1, "a", b"first"))
        assert not await backend.insert(versioned(1, "a", b"first"))
        assert not await other.insert(versioned(1, "b", b"second"))

        assert await fetch_row(backend, KEY) == versioned(1, "a", b"first")

    async def test_swap_replaces_blob_token_and_created_at(self, backend: Backend) -> None:
        await backend.insert(versioned(1, "a", b"old", created_us=1))

        assert await backend.swap(versioned(1, "b", b"new", created_us=2), "a")

        assert await fetch_row(backend, KEY) == versioned(1, "b", b"new", created_us=2)

    async def test_swap_with_another_token_or_of_a_missing_row_is_lost(self, backend: Backend) -> None:
        await backend.insert(versioned(1, "a"))

        assert not await backend.swap(versioned(1, "c"), "A")
        assert not await backend.swap(versioned(1, "c"), "a ")
        assert not await backend.swap(versioned(2, "c"), "a")

        assert await fetch_row(backend, KEY) == versioned(1, "a")
        assert await fetch_row(backend, versioned(2, "a").key) is None

    async def test_a_swap_that_was_applied_is_lost_when_repeated(self, backend: Backend) -> None:
        await backend.insert(versioned(1, "a"))

        assert await backend.swap(versioned(1, "b"), "a")
        assert not await backend.swap(versioned(1, "b"), "a")

        assert await fetch_row(backend, KEY) == versioned(1, "b")

    async def test_delete_if_deletes_only_the_expected_version(self, backend: Backend) -> None:
        await backend.insert(versioned(1, "a"))

        assert not await backend.delete_if(KEY, "b")
        assert await fetch_row(backend, KEY) is not None
        assert await backend.delete_if(KEY, "a")
        assert not await backend.delete_if(KEY, "a")

        assert await fetch_row(backend, KEY) is None
        assert await backend.insert(versioned(1, "c"))

    async def test_an_immutable_row_cannot_be_swapped_or_conditionally_deleted(
        self, backend: Backend
    ) -> None:
        await backend.write([fixed(1)])
        changed = fixed(1, b"changed")._replace(token="b")

        with pytest.raises(BadInput):
            await backend.swap(changed, "")
        with pytest.raises(BadInput):
            await backend.delete_if(obj_key(1), "")
        assert not await backend.insert(changed)
        assert not await backend.swap(changed, "a")
        assert not await backend.delete_if(obj_key(1), "a")

        assert await fetch_row(backend, obj_key(1)) == fixed(1)

    @pytest.mark.parametrize("token", ["", "a\0", "\ud800", "x" * 256])
    async def test_a_token_that_cannot_be_stored_is_bad_input(self, backend: Backend, token: str) -> None:
        await backend.insert(versioned(1, "a"))

        with pytest.raises(BadInput):
            await backend.insert(versioned(2, token))
        with pytest.raises(BadInput):
            await backend.swap(versioned(1, token), "a")
        with pytest.raises(BadInput):
            await backend.swap(versioned(1, "b"), token)
        with pytest.raises(BadInput):
            await backend.delete_if(KEY, token)

        assert await fetch_row(backend, KEY) == versioned(1, "a")

    async def test_of_many_racing_inserts_exactly_one_wins(self, backend: Backend, other: Backend) -> None:
        rows = [versioned(1, f"t{number}") for number in range(RACERS)]

        won = await asyncio.gather(
            *((other if number % 2 else backend).insert(row) for number, row in enumerate(rows))
        )

        assert sum(won) == 1
        assert await fetch_row(backend, KEY) == rows[won.index(True)]

    async def test_of_many_racing_swaps_exactly_one_wins(self, backend: Backend, other: Backend) -> None:
        await backend.insert(versioned(1, "start"))
        rows = [versioned(1, f"t{number}") for number in range(RACERS)]

        won = await asyncio.gather(
            *((other if number % 2 else backend).swap(row, "start") for number, row in enumerate(rows))
        )

        assert sum(won) == 1
        assert await fetch_row(backend, KEY) == rows[won.index(True)]

    async def test_of_racing_deletes_and_swaps_exactly_one_wins(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert(versioned(1, "start"))

        won = await asyncio.gather(
            backend.delete_if(KEY, "start"),
            other.swap(versioned(1, "next"), "start"),
            other.delete_if(KEY, "start"),
            backend.swap(versioned(1, "next too"), "start"),
        )

        assert sum(won) == 1
        left = await fetch_row(backend, KEY)
        assert left == [None, versioned(1, "next"), None, versioned(1, "next too")][won.index(True)]

    async def test_a_read_of_a_row_sees_what_any_handle_was_acknowledged_before(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert(versioned(1, "t0"))
        for number in range(10):
            writer, reader = (backend, other) if number % 2 else (other, backend)

            assert await writer.swap(versioned(1, f"t{number + 1}"), f"t{number}")

            assert await fetch_row(reader, KEY) == versioned(1, f"t{number + 1}")
            assert await fetch_row(writer, KEY) == versioned(1, f"t{number + 1}")
