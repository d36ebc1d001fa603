"""Rows that are written once: fetch, write, delete, and the rules for keys."""

import asyncio

import pytest

from cynosure.common.errors import BadInput, TooLarge
from cynosure.persistence.spi import MAX_ID, TEXT_BYTES, Backend, ObjKey, Row
from cynosure.testing.backend_kit.fixtures import KitFixtures
from cynosure.testing.backend_kit.samples import REF, fetch_row, fixed, obj_key, reference, versioned

LARGE_BLOB_BYTES = 1 << 20

# Texts that some database or driver would change, compare as equal, or mistake for syntax.
ODD_TEXTS = (
    "a",
    "A",
    "a ",
    " a",
    "ä",
    "a\u0308",
    "ß",
    "ss",
    "İ",
    "i",
    "%",
    "_",
    "'",
    '"',
    "\\",
    "\\x00",
    "a/b",
    "a:b",
    "a\tb",
    "a\nb",
    "\x01",
    "\x7f",
    "NULL",
    "null",
    "0",
    "00",
    "\ud7ff",
    "\uffff",
    "\U0001f600",
    "\u200b",
    "x" * TEXT_BYTES,
    "é" * (TEXT_BYTES // 2),
)
BAD_TEXTS = ("", "a\0b", "\0", "\ud800", "a\udfffb", "x" * (TEXT_BYTES + 1), "é" * (TEXT_BYTES // 2 + 1))
BAD_IDS = (-1, MAX_ID + 1)


class ImmutableRowTests(KitFixtures):
    async def test_fetch_returns_rows_as_written_in_the_order_asked_for(self, backend: Backend) -> None:
        rows = [fixed(id_, f"blob {id_}".encode()) for id_ in (3, 1, 2)]
        await backend.write(rows)

        found = await backend.fetch([obj_key(id_) for id_ in (2, 3, 1)])

        assert found == [rows[2], rows[0], rows[1]]

    async def test_fetch_gives_none_for_missing_rows_and_repeats_duplicates(self, backend: Backend) -> None:
        await backend.write([fixed(1)])

        found = await backend.fetch([obj_key(2), obj_key(1), obj_key(2), obj_key(1)])

        assert found == [None, fixed(1), None, fixed(1)]

    async def test_a_single_missing_row_is_none(self, backend: Backend) -> None:
        assert await backend.fetch([obj_key(1)]) == [None]

    async def test_a_whole_batch_of_keys_is_fetched_at_once(self, backend: Backend) -> None:
        ids = range(1, backend.limits.fetch_batch + 1)
        await backend.write([fixed(id_) for id_ in ids])

        found = await backend.fetch([obj_key(id_) for id_ in ids])

        assert found == [fixed(id_) for id_ in ids]

    async def test_empty_sequences_are_answered_empty(self, backend: Backend) -> None:
        await backend.write([])
        await backend.delete([])

        assert await backend.fetch([]) == []
        assert await backend.fetch_refs([]) == []
        assert backend.fetch_refs_now([]) in ([], None)

    async def test_write_leaves_an_existing_key_alone(self, backend: Backend, other: Backend) -> None:
        await backend.write([fixed(1, b"first")])

        await other.write([fixed(1, b"second"), fixed(2)])

        assert await backend.fetch([obj_key(1), obj_key(2)]) == [fixed(1, b"first"), fixed(2)]

    async def test_a_key_twice_in_one_write_is_one_row(self, backend: Backend) -> None:
        await backend.write([fixed(1, b"first"), fixed(1, b"first")])

        assert await fetch_row(backend, obj_key(1)) == fixed(1, b"first")

    async def test_racing_writes_of_the_same_row_all_succeed(self, backend: Backend, other: Backend) -> None:
        row = fixed(1, b"same")

        await asyncio.gather(*(handle.write([row, fixed(2)]) for handle in (backend, other) * 4))

        assert await fetch_row(backend, row.key) == row

    @pytest.mark.parametrize("blob", [b"", b"\0", bytes(range(256)) * 3, b"\xff\xfe"])
    async def test_any_bytes_come_back_as_they_are(self, backend: Backend, blob: bytes) -> None:
        await backend.write([fixed(1, blob)])

        assert await fetch_row(backend, obj_key(1)) == fixed(1, blob)

    async def test_a_row_of_the_largest_size_is_stored(self, backend: Backend) -> None:
        blob = bytes(range(256)) * (min(LARGE_BLOB_BYTES, backend.limits.row_bytes) // 256)
        await backend.write([fixed(1, blob)])

        found = await fetch_row(backend, obj_key(1))

        assert found is not None
        assert found.blob == blob

    async def test_a_row_above_the_limit_is_refused_wherever_it_is_given(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1))
        await backend.insert(versioned(1, "a"))
        too_large = bytes(backend.limits.row_bytes + 1)

        with pytest.raises(TooLarge):
            await backend.write([fixed(1), fixed(2, too_large)])
        with pytest.raises(TooLarge):
            await backend.insert(versioned(3, "a", too_large))
        with pytest.raises(TooLarge):
            await backend.swap(versioned(1, "b", too_large), "a")
        with pytest.raises(TooLarge):
            await backend.swap_ref(reference(1), reference(2), [fixed(4, too_large)])

        # Before anything is sent: also the rows beside the large one are not there.
        keys = [obj_key(1), obj_key(2), versioned(3, "a").key, obj_key(4)]
        assert await backend.fetch(keys) == [None] * 4
        assert await fetch_row(backend, versioned(1, "a").key) == versioned(1, "a")
        assert await backend.fetch_refs([REF]) == [reference(1)]

    async def test_an_immutable_row_with_a_token_is_refused(self, backend: Backend) -> None:
        with pytest.raises(BadInput):
            await backend.write([fixed(1)._replace(token="a")])
        with pytest.raises(BadInput):
            await backend.swap_ref(reference(1), reference(2), [fixed(1)._replace(token="a")])

    async def test_odd_texts_are_different_keys(self, backend: Backend) -> None:
        keys = [obj_key(1, type_=text) for text in ODD_TEXTS]
        keys += [obj_key(1, catalog=text) for text in ODD_TEXTS]
        keys += [obj_key(1, realm=text) for text in ODD_TEXTS]
        rows = [Row(key, str(number).encode()) for number, key in enumerate(keys)]

        await backend.write(rows)

        assert await backend.fetch(keys) == rows

    async def test_the_same_id_in_another_realm_catalog_or_type_is_another_row(
        self, backend: Backend
    ) -> None:
        keys = [obj_key(1), obj_key(1, type_="x"), obj_key(1, catalog="x"), obj_key(1, realm="x")]

        await backend.write([Row(key, key.type.encode()) for key in keys[:3]])
        await backend.delete([keys[0]])

        found = await backend.fetch(keys)
        assert [row is not None for row in found] == [False, True, True, False]

    @pytest.mark.parametrize("text", BAD_TEXTS)
    async def test_a_text_that_cannot_be_part_of_a_key_is_bad_input(
        self, backend: Backend, text: str
    ) -> None:
        for key in (obj_key(1, type_=text), obj_key(1, catalog=text), obj_key(1, realm=text)):
            await self._refused(backend, key)

    @pytest.mark.parametrize("id_", BAD_IDS)
    async def test_an_id_outside_63_bits_is_bad_input(self, backend: Backend, id_: int) -> None:
        await self._refused(backend, obj_key(id_))

    async def _refused(self, backend: Backend, key: ObjKey) -> None:
        with pytest.raises(BadInput):
            await backend.fetch([obj_key(1), key])
        with pytest.raises(BadInput):
            await backend.write([fixed(1), Row(key, b"")])
        with pytest.raises(BadInput):
            await backend.insert(Row(key, b"", "token"))
        with pytest.raises(BadInput):
            await backend.swap(Row(key, b"", "token"), "old")
        with pytest.raises(BadInput):
            await backend.delete_if(key, "old")
        with pytest.raises(BadInput):
            await backend.delete([obj_key(1), key])
        assert await fetch_row(backend, obj_key(1)) is None

    @pytest.mark.parametrize("id_", [0, 1, 2**31, 2**32 + 1, 2**53 + 1, MAX_ID - 1, MAX_ID])
    async def test_ids_of_all_sizes_are_kept_exactly(self, backend: Backend, id_: int) -> None:
        await backend.write([fixed(id_)])

        assert await fetch_row(backend, obj_key(id_)) == fixed(id_)
        assert [head.key.id for head in await backend.scan(after=None, limit=9)] == [id_]

    async def test_created_at_is_the_writers(self, backend: Backend) -> None:
        now_us = 1_790_000_000_123_456
        await backend.write([fixed(1)._replace(created_us=now_us), fixed(2)._replace(created_us=0)])

        found = await backend.fetch([obj_key(1), obj_key(2)])

        assert [row.created_us for row in found if row] == [now_us, 0]

    async def test_delete_removes_rows_of_both_kinds_and_ignores_missing_ones(self, backend: Backend) -> None:
        await backend.write([fixed(1), fixed(2)])
        await backend.insert(versioned(3, "a"))

        await backend.delete([obj_key(1), obj_key(9), versioned(3, "a").key, obj_key(1)])

        assert await backend.fetch([obj_key(1), obj_key(2), versioned(3, "a").key]) == [None, fixed(2), None]

    async def test_a_write_is_seen_by_every_handle_once_it_is_acknowledged(
        self, backend: Backend, other: Backend
    ) -> None:
        for id_ in range(1, 11):
            writer, reader = (backend, other) if id_ % 2 else (other, backend)

            await writer.write([fixed(id_)])

            assert await fetch_row(reader, obj_key(id_)) == fixed(id_)
