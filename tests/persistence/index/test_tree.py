import gc
import random
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, CorruptObject, Damaged, MissingObject, NewerFormat
from cynosure.persistence.index import Index, IndexLimits, Inner, Leaf, Node, check, encode_key, links
from cynosure.persistence.index.buffer import EMPTY_BUFFER
from cynosure.persistence.index.node import EMPTY_LEAF
from cynosure.persistence.spi import ObjId

GOLDEN = Path(__file__).parents[2] / "golden" / "index"
KEYS = st.lists(st.sampled_from(b"ab\x01\xff"), max_size=5).map(bytes)
VALUES = st.binary(min_size=2, max_size=2) | st.binary(max_size=6)
CHANGES = st.dictionaries(KEYS, VALUES | st.none(), min_size=1, max_size=30)
Changes = dict[bytes, bytes | None]
LIMITS = st.builds(
    IndexLimits,
    buffer_bytes=st.sampled_from([1, 40, 200]),
    spill_leaves=st.integers(1, 3),
    root_bytes=st.sampled_from([1, 60, 300]),
    leaf_entries=st.integers(4, 9),
    leaf_bytes=st.sampled_from([20, 90, 1000]),
    inner_entries=st.integers(4, 7),
    inner_bytes=st.sampled_from([30, 120, 1000]),
)


def changed(model: dict[bytes, bytes], changes: Changes) -> dict[bytes, bytes]:
    return {key: value for key, value in (model | changes).items() if value is not None}


def table(number: int) -> bytes:
    return encode_key("sales", f"orders_{number % 7}", f"table_{number:05d}")


@pytest.mark.anyio
@settings(max_examples=120, deadline=None)
@given(rounds=st.lists(st.tuples(CHANGES, LIMITS), max_size=12), keeps_nodes=st.booleans())
async def test_an_index_is_a_sorted_dict_and_every_earlier_one_stays_what_it_was(
    make_rows, rounds: list[tuple[Changes, IndexLimits]], keeps_nodes: bool
) -> None:
    rows = make_rows(keeps_nodes=keeps_nodes)
    index, model = Index.EMPTY, {}
    history = [(index, model)]

    for changes, limits in rounds:
        index = Index.decode((await rows.apply(index, changes, limits)).encode())
        model = changed(model, changes)
        history.append((index, model))

    for index, model in history:
        assert await index.scan(rows, limit=1000) == sorted(model.items())
        asked = sorted({*model, *rows_keys(rounds), b"absent", b"a\0b"})
        assert await index.find_many(rows, asked) == [model.get(key) for key in asked]
        assert [await index.find(rows, key) for key in asked[::3]] == [model.get(key) for key in asked[::3]]
        await check(rows, index)


def rows_keys(rounds: list[tuple[Changes, IndexLimits]]) -> set[bytes]:
    return {key for changes, _ in rounds for key in changes}


@pytest.mark.anyio
@settings(max_examples=60, deadline=None)
@given(rounds=st.lists(st.tuples(CHANGES, LIMITS), min_size=1, max_size=6))
async def test_every_row_handed_out_is_reached_from_the_new_root(
    make_rows, rounds: list[tuple[Changes, IndexLimits]]
) -> None:
    rows = make_rows()
    index = Index.EMPTY

    for changes, limits in rounds:
        before = set(rows.rows)
        index = await rows.apply(index, changes, limits)
        reached = (await check(rows, index)).node_ids
        assert set(rows.rows) - before <= reached


@pytest.mark.anyio
async def test_recent_changes_win_over_the_tree_and_cost_no_row(rows, tiny) -> None:
    index = await rows.apply(Index.EMPTY, {table(at): b"old" for at in range(100)}, tiny)
    written = len(rows.rows)

    newer = await rows.apply(index, {table(1): b"new", table(2): None}, IndexLimits())

    assert len(rows.rows) == written
    assert await newer.find_many(rows, [table(1), table(2), table(3)]) == [b"new", None, b"old"]
    assert newer.stats().tombstones == 1


@pytest.mark.anyio
async def test_the_least_recently_changed_leaf_is_spilled_and_hot_keys_stay(rows) -> None:
    limits = IndexLimits(buffer_bytes=400, leaf_entries=8, root_bytes=100)
    index = await rows.apply(Index.EMPTY, {table(at): b"00000000" for at in range(300)}, limits)
    hot = table(151)
    written = len(rows.rows)

    for at in range(60):
        index = await rows.apply(index, {table(at * 5): b"11111111", hot: b"%08d" % at}, limits)
        assert index.buffer.entries[hot] == b"%08d" % at
        assert index.buffer.size_bytes <= 2 * limits.buffer_bytes
    assert len(rows.rows) > written + 60


@pytest.mark.anyio
async def test_one_update_writes_at_most_one_path_of_rows(rows) -> None:
    limits = IndexLimits(buffer_bytes=500, leaf_entries=8, inner_entries=8, root_bytes=100)
    index = await rows.apply(Index.EMPTY, {table(at): b"00000000" for at in range(1000)}, limits)
    chance = random.Random(1)
    written = []

    for _ in range(200):
        applied = await index.apply(
            rows, {table(chance.randrange(1000)): b"11111111"}, new_id=rows.new_id, limits=limits
        )
        rows.write(applied.nodes)
        index = applied.index
        written.append(len(applied.nodes))

    assert max(written) <= index.stats().height
    assert index.buffer.size_bytes <= limits.buffer_bytes


@pytest.mark.anyio
async def test_a_large_entry_does_not_make_one_commit_spill_many_leaves(rows) -> None:
    limits = IndexLimits(buffer_bytes=1000, leaf_entries=8, inner_entries=8, root_bytes=100)
    index = await rows.apply(Index.EMPTY, {table(at): b"00000000" for at in range(1000)}, limits)
    for at in range(0, 1000, 25):
        index = await rows.apply(index, {table(at): b"11111111"}, limits)
    height = index.stats().height

    applied = await index.apply(rows, {table(3): b"x" * 700}, new_id=rows.new_id, limits=limits)

    assert 0 < len(applied.nodes) <= height
    assert limits.buffer_bytes < applied.index.buffer.size_bytes < 2 * limits.buffer_bytes


@pytest.mark.anyio
async def test_a_bulk_change_spills_what_it_must_and_no_more(rows) -> None:
    limits = IndexLimits(buffer_bytes=500, leaf_entries=8, inner_entries=8, root_bytes=100)
    entries: Changes = {table(at): b"00000000" for at in range(1000)}
    index = await rows.apply(Index.EMPTY, entries, limits)
    leaf_count = (await check(rows, index)).leaf_nodes
    neighbours: Changes = dict.fromkeys(sorted(entries)[400:480], b"11111111")

    applied = await index.apply(rows, neighbours, new_id=rows.new_id, limits=limits)

    assert applied.index.buffer.size_bytes <= limits.buffer_bytes
    assert len(applied.nodes) < leaf_count / 4


@pytest.mark.anyio
async def test_a_small_index_needs_no_row_at_all(rows) -> None:
    index = await rows.apply(Index.EMPTY, {table(at): b"00000000" for at in range(60)}, IndexLimits())

    for at in range(200):
        index = await rows.apply(index, {table(at % 60): b"%08d" % at}, IndexLimits())

    assert rows.rows == {}
    assert await index.find(rows, table(19)) == b"00000199"


@pytest.mark.anyio
async def test_created_and_dropped_names_leave_nothing_behind(make_rows) -> None:
    rows = make_rows(keeps_nodes=True)
    limits = IndexLimits(buffer_bytes=300, root_bytes=150, leaf_entries=12, inner_entries=12)
    index = await rows.apply(Index.EMPTY, {table(at): b"kept" for at in range(200)}, limits)
    at_first = await check(rows, index)

    for start in range(1000, 5000, 100):
        names = [table(at) for at in range(start, start + 100)]
        index = await rows.apply(index, dict.fromkeys(names, b"temporary"), limits)
        for name in names:
            index = await rows.apply(index, {name: None}, limits)

    at_last = await check(rows, index)
    assert len(at_last.node_ids) <= 1.5 * len(at_first.node_ids)
    assert at_last.height <= at_first.height
    assert await rows.items(index) == {table(at): b"kept" for at in range(200)}


@pytest.mark.anyio
async def test_an_emptied_index_shrinks_back_into_the_commit_object(rows, tiny) -> None:
    names = [table(at) for at in range(300)]
    index = await rows.apply(Index.EMPTY, dict.fromkeys(names, b"x"), tiny)
    height = index.stats().height

    index = await rows.apply(index, dict.fromkeys(names), tiny)
    spill_all = IndexLimits(buffer_bytes=1, spill_leaves=1000)
    index = await rows.apply(index, {b"one": b"1"}, spill_all)

    assert height > 2
    assert index.stats().height == 0
    assert await rows.items(index) == {b"one": b"1"}


@pytest.mark.anyio
async def test_what_remains_of_a_large_index_moves_back_into_the_commit_object(rows, tiny) -> None:
    names = [table(at) for at in range(300)]
    index = await rows.apply(Index.EMPTY, dict.fromkeys(names, b"x"), tiny)
    before = set(rows.rows)

    index = await rows.apply(index, dict.fromkeys(names[1:]), tiny)

    assert index.stats().height == 0
    assert set(rows.rows) == before
    assert await rows.items(index) == {names[0]: b"x"}


@pytest.mark.anyio
async def test_ascending_keys_leave_well_filled_leaves(make_rows) -> None:
    rows = make_rows(keeps_nodes=True)
    limits = IndexLimits(buffer_bytes=200, leaf_entries=16, inner_entries=16, root_bytes=200)
    index = Index.EMPTY

    for at in range(2000):
        index = await rows.apply(index, {b"%06d" % at: b"12345678"}, limits)

    shape = await check(rows, index)
    assert shape.entries / shape.leaf_nodes > 0.75 * limits.leaf_entries


@pytest.mark.anyio
async def test_leaves_are_cut_between_namespaces_where_one_is_near(make_rows) -> None:
    rows = make_rows(keeps_nodes=True)
    limits = IndexLimits(buffer_bytes=500, leaf_entries=40, root_bytes=10_000)
    names = [encode_key(f"namespace_{at // 11:03d}", f"table_{at:05d}") for at in range(3000)]
    model: dict[bytes, bytes] = {}
    index = Index.EMPTY
    random.Random(2).shuffle(names)

    for start in range(0, 3000, 50):
        changes: Changes = dict.fromkeys(names[start : start + 50], b"%08d" % start)
        changes |= dict.fromkeys(names[max(0, start - 500) : start : 10])
        index, model = await rows.apply(index, changes, limits), changed(model, changes)

    assert await rows.items(index) == model
    assert (await check(rows, index)).leaf_nodes > 30
    assert isinstance(index.root, Inner)
    between = [separator for separator in index.root.separators if b"\x01" not in separator]
    assert len(between) > index.root.count / 3


@pytest.mark.anyio
async def test_keys_of_any_length_make_a_tree_that_still_narrows(rows) -> None:
    limits = IndexLimits(buffer_bytes=1, root_bytes=50, leaf_bytes=100, inner_bytes=100)
    chance = random.Random(3)
    model = {chance.randbytes(chance.choice([1, 700])).replace(b"\0", b"x"): b"v" for _ in range(200)}

    index = await rows.apply(Index.EMPTY, model, limits)

    assert await rows.items(index) == model
    assert (await check(rows, index)).inner_nodes < 200


@pytest.mark.anyio
async def test_a_change_without_effect_writes_nothing(rows, tiny) -> None:
    spill_all = IndexLimits(buffer_bytes=1, spill_leaves=1000, root_bytes=60, leaf_entries=4, inner_entries=4)
    index = await rows.apply(Index.EMPTY, {table(at): b"same" for at in range(50)}, spill_all)

    same = await index.apply(rows, {table(7): b"same"}, new_id=rows.new_id, limits=spill_all)
    absent = await index.apply(rows, {b"absent": None}, new_id=rows.new_id, limits=spill_all)

    assert same.nodes == absent.nodes == []
    assert same.index.root is absent.index.root is index.root
    assert (await index.apply(rows, {}, new_id=rows.new_id, limits=spill_all)).index is index


@pytest.mark.anyio
async def test_many_lookups_ask_once_per_level(rows, tiny) -> None:
    index = await rows.apply(Index.EMPTY, {table(at): b"%04d" % at for at in range(200)}, tiny)
    rows.requests = 0

    found = await index.find_many(rows, [table(at) for at in range(200)])

    assert found == [b"%04d" % at for at in range(200)]
    assert rows.requests == index.stats().height


@pytest.mark.anyio
async def test_links_name_every_row_and_every_value(rows, tiny) -> None:
    model = {table(at): b"%04d" % at for at in range(100)}
    index = await rows.apply(Index.EMPTY, model, tiny)
    index = await rows.apply(index, {table(500): b"late", table(1): None}, IndexLimits())
    reached: set[ObjId] = set()
    values: set[bytes] = set()

    pending: list[Index | Node] = [index]
    while pending:
        children, found = links(pending.pop())
        values.update(found)
        reached.update(children)
        pending += await rows.load_many(children)

    assert reached == set(rows.rows) == (await check(rows, index)).node_ids
    assert values == {*model.values(), b"late"}


def test_the_weight_is_the_memory_within_a_fifth() -> None:
    stored = []
    for number in range(100):
        changes: Changes = {table(number * 1000 + at): b"%08d" % at for at in range(70)}
        stored.append(Index(EMPTY_LEAF, EMPTY_BUFFER.apply(changes)).encode())
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        indexes = [Index.decode(bytes(bytearray(data))) for data in stored]
        assert all(index.buffer.ordered for index in indexes)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert sum(index.weight_bytes for index in indexes) == pytest.approx(held, rel=0.2)


def test_the_embedded_form_is_made_once() -> None:
    stored = Index.EMPTY.encode()

    index = Index.decode(stored)

    assert index.encode() is stored
    assert index.is_empty


async def golden_index(rows) -> Index:
    limits = IndexLimits(buffer_bytes=40, root_bytes=60, leaf_entries=4)
    index = await rows.apply(Index.EMPTY, {b"ns\x01%d" % at: b"0000000%d" % at for at in range(9)}, limits)
    return await rows.apply(index, {b"ns\x012": b"22222222", b"ns\x013": None}, IndexLimits())


@pytest.mark.anyio
async def test_a_small_embedded_index_is_stored_as_the_golden_bytes(rows) -> None:
    stored = (GOLDEN / "embedded.hex").read_text().strip()
    index = await golden_index(rows)

    assert index.encode().hex() == stored
    assert await rows.items(Index.decode(bytes.fromhex(stored))) == await rows.items(index)


@settings(max_examples=300)
@given(st.data())
def test_a_damaged_embedded_form_never_raises_anything_but_damage(data: st.DataObject) -> None:
    stored = bytearray.fromhex((GOLDEN / "embedded.hex").read_text().strip())
    del stored[data.draw(st.integers(0, len(stored)) | st.just(len(stored))) :]
    for _ in range(data.draw(st.integers(0, 3)) if stored else 0):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))

    with suppress(Damaged):
        Index.decode(bytes(stored)).stats()


def test_a_newer_embedded_form_is_named_as_such() -> None:
    with pytest.raises(NewerFormat, match="Upgrade this server"):
        Index.decode(b"\x02" + Index.EMPTY.encode()[1:])


@pytest.mark.anyio
async def test_a_missing_row_and_a_wrong_link_are_reported(rows, tiny) -> None:
    index = await rows.apply(Index.EMPTY, {table(at): b"x" for at in range(100)}, tiny)
    assert isinstance(index.root, Inner)
    children = list(index.root.children)
    whole = dict(rows.rows)

    rows.rows = {id: stored for id, stored in whole.items() if id != children[0]}
    with pytest.raises(MissingObject):
        await index.find(rows, b"")
    rows.rows = dict.fromkeys(whole, Leaf.of([(b"a", b"1")]).encode())
    for reading in (index.find(rows, b"a"), index.find_many(rows, [b"a"]), index.scan(rows, limit=5)):
        with pytest.raises(CorruptObject, match="another level"):
            await reading


@pytest.mark.anyio
async def test_a_page_of_no_entries_is_refused(rows) -> None:
    with pytest.raises(BadInput):
        await Index.EMPTY.scan(rows, limit=0)
