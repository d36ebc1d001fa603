"""Scans: order, paging, and what a change in between may do."""

import random

import pytest

from cynosure.common.errors import BadInput
from cynosure.persistence.spi import MAX_ID, Backend, ObjKey, Row, RowHead
from cynosure.testing.backend_kit.fixtures import KitFixtures
from cynosure.testing.backend_kit.samples import fixed, obj_key, pages, scan_all, versioned

# In the order of UTF-8 bytes. Sorting by locale, by UTF-16 or without case gives another one.
TEXTS_IN_ORDER = (
    *("0", "00", "A", "B", "Z", "_", "a", "a ", "a-b", "ab", "b", "z"),
    *("\u00df", "\u00e4", "\u017f", "\uffff", "\U00010000", "\U0001f600"),
)
IDS_IN_ORDER = (0, 1, 2, 9, 10, 255, 256, 2**31, 2**32, 2**53, 2**53 + 1, 2**53 + 2, MAX_ID - 1, MAX_ID)


class ScanTests(KitFixtures):
    async def test_an_empty_store_has_no_pages(self, backend: Backend) -> None:
        assert await backend.scan(after=None, limit=10) == []
        assert await backend.scan(after=obj_key(1), limit=10) == []

    async def test_a_scan_returns_heads_of_rows_of_both_kinds(self, backend: Backend) -> None:
        await backend.write([fixed(1, b""), fixed(2, b"12345")])
        await backend.insert(versioned(3, "token", b"123", created_us=9))

        heads = await scan_all(backend)

        assert heads == [
            RowHead(versioned(3, "token").key, "token", 9, 3),
            RowHead(obj_key(1), "", fixed(1).created_us, 0),
            RowHead(obj_key(2), "", fixed(2).created_us, 5),
        ]

    @pytest.mark.parametrize("limit", [1, 2, 7, 100])
    async def test_rows_come_in_key_order_whatever_the_page(self, backend: Backend, limit: int) -> None:
        keys = [obj_key(id_) for id_ in IDS_IN_ORDER[:6]]
        keys += [obj_key(id_, type_=text) for text in ("a", "b") for id_ in (2, 10)]
        keys += [obj_key(3, catalog="c-0"), obj_key(1, catalog="c-2"), obj_key(5, realm="zz")]
        shuffled = random.Random(limit).sample(keys, len(keys))
        await backend.write([Row(key, b"") for key in shuffled])

        found = [[head.key for head in page] async for page in pages(backend, limit)]

        assert [key for page in found for key in page] == sorted(keys)
        assert all(1 <= len(page) <= limit for page in found)

    @pytest.mark.parametrize("part", ["realm", "catalog", "type"])
    async def test_texts_are_ordered_by_their_utf_8_bytes(self, backend: Backend, part: str) -> None:
        assert list(TEXTS_IN_ORDER) == sorted(TEXTS_IN_ORDER, key=str.encode)
        keys = [ObjKey(**{**obj_key(1)._asdict(), part: text}) for text in TEXTS_IN_ORDER]
        await backend.write([Row(key, b"") for key in reversed(keys)])

        assert [head.key for head in await scan_all(backend, limit=5)] == keys

    async def test_ids_are_ordered_as_numbers(self, backend: Backend) -> None:
        await backend.write([fixed(id_) for id_ in reversed(IDS_IN_ORDER)])

        assert [head.key.id for head in await scan_all(backend, limit=4)] == list(IDS_IN_ORDER)

    async def test_a_scan_goes_on_after_a_key_that_does_not_exist(self, backend: Backend) -> None:
        await backend.write([fixed(10), fixed(30)])

        assert [head.key.id for head in await backend.scan(after=obj_key(20), limit=9)] == [30]
        assert [head.key.id for head in await backend.scan(after=obj_key(30), limit=9)] == []
        assert [head.key.id for head in await backend.scan(after=obj_key(MAX_ID, "a"), limit=9)] == [10, 30]

    async def test_rows_that_stay_are_found_although_others_come_and_go(
        self, backend: Backend, other: Backend
    ) -> None:
        staying = [id_ * 10 for id_ in range(1, 13)]
        going = [id_ + 5 for id_ in staying]
        await backend.write([fixed(id_) for id_ in staying + going])

        found: list[int] = []
        async for page in pages(backend, limit=3):
            found += [head.key.id for head in page]
            # Also what the scan stands on goes, and new rows come before and behind it.
            await other.delete([obj_key(id_) for id_ in going if id_ <= found[-1] or id_ % 20 == 5])
            # Few: a scan need not end while rows keep coming in its way.
            if found[-1] in staying:
                await other.write([fixed(found[-1] + 1), fixed(found[-1] - 1)])

        assert found == sorted(set(found))
        assert set(staying) <= set(found)

    @pytest.mark.parametrize("limit", [0, -1])
    async def test_a_page_for_no_rows_is_bad_input(self, backend: Backend, limit: int) -> None:
        with pytest.raises(BadInput):
            await backend.scan(after=None, limit=limit)

    async def test_a_page_after_an_impossible_key_is_bad_input(self, backend: Backend) -> None:
        with pytest.raises(BadInput):
            await backend.scan(after=obj_key(1, type_="\0"), limit=1)
