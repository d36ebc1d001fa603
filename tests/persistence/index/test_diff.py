import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.common.errors import CorruptObject
from cynosure.persistence.index import Index, IndexLimits, Leaf, diff

KEYS = st.lists(st.sampled_from(b"ab\x01\xff"), max_size=4).map(bytes)
CHANGES = st.dictionaries(KEYS, st.binary(max_size=1) | st.none(), max_size=25)
Changes = dict[bytes, bytes | None]


@pytest.mark.anyio
@settings(max_examples=150, deadline=None)
@given(base=CHANGES, ours=st.lists(CHANGES, max_size=3), theirs=st.lists(CHANGES, max_size=3))
async def test_a_diff_is_the_diff_of_two_dicts_in_key_order(
    make_rows, tiny, base: Changes, ours: list[Changes], theirs: list[Changes]
) -> None:
    rows = make_rows()
    common = await rows.apply(Index.EMPTY, base, tiny)
    sides = []
    for rounds in (ours, theirs):
        index = common
        for changes in rounds:
            index = await rows.apply(index, changes, tiny)
        sides.append(index)
    before, after = await rows.items(sides[0]), await rows.items(sides[1])

    found = [tuple(difference) async for difference in diff(rows, *sides)]

    assert found == [
        (key, before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


@pytest.mark.anyio
async def test_what_two_indexes_share_is_not_read(rows) -> None:
    limits = IndexLimits(buffer_bytes=1, leaf_entries=8, inner_entries=8, root_bytes=40)
    old = await rows.apply(Index.EMPTY, {b"%05d" % at: b"v" for at in range(2000)}, limits)
    new = await rows.apply(old, {b"00700": b"w"}, limits)
    height = old.stats().height
    rows.loads = 0

    found = [difference.key async for difference in diff(rows, old, new)]

    assert found == [b"00700"]
    assert height >= 3
    assert rows.loads <= 2 * height


@pytest.mark.anyio
async def test_an_index_does_not_differ_from_itself_and_nothing_is_read(rows, tiny) -> None:
    index = await rows.apply(Index.EMPTY, {b"%05d" % at: b"v" for at in range(100)}, tiny)
    rows.loads = 0

    assert [difference async for difference in diff(rows, index, index)] == []
    assert rows.loads == 0


@pytest.mark.anyio
async def test_a_wrong_link_is_reported(rows, tiny) -> None:
    index = await rows.apply(Index.EMPTY, {b"%05d" % at: b"v" for at in range(100)}, tiny)
    rows.rows = dict.fromkeys(rows.rows, Leaf.of([(b"a", b"1")]).encode())

    with pytest.raises(CorruptObject, match="another level"):
        assert [difference async for difference in diff(rows, index, Index.EMPTY)]
