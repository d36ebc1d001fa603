import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.persistence.index import BulkLoad, Index, IndexLimits, Inner, check

KEYS = st.lists(st.sampled_from(b"ab\x01\xff"), max_size=6).map(bytes)


@pytest.mark.anyio
@settings(max_examples=100, deadline=None)
@given(
    entries=st.dictionaries(KEYS, st.binary(max_size=4), max_size=150),
    leaf_entries=st.integers(4, 12),
    root_bytes=st.sampled_from([1, 60, 4000]),
    inner_bytes=st.sampled_from([30, 4000]),
    batch=st.integers(1, 60),
)
async def test_a_bulk_load_holds_what_was_fed_and_can_be_changed_like_any_other(
    make_rows,
    tiny,
    entries: dict[bytes, bytes],
    leaf_entries: int,
    root_bytes: int,
    inner_bytes: int,
    batch: int,
) -> None:
    rows = make_rows()
    limits = IndexLimits(
        leaf_entries=leaf_entries, inner_entries=4, root_bytes=root_bytes, inner_bytes=inner_bytes
    )
    load = BulkLoad(new_id=rows.new_id, limits=limits)
    ordered = sorted(entries.items())

    for start in range(0, len(ordered), batch):
        nodes = load.feed(ordered[start : start + batch])
        for _, node in nodes:  # children come first
            assert not isinstance(node, Inner) or set(node.children) <= {*rows.rows, *dict(nodes)}
        rows.write(nodes)
    applied = load.finish()
    rows.write(applied.nodes)

    assert await applied.index.scan(rows, limit=1000) == ordered
    assert (await check(rows, applied.index)).node_ids == set(rows.rows)
    index = await rows.apply(applied.index, {key: None for key, _ in ordered[::2]} | {b"new": b"n"}, tiny)
    assert await rows.items(index) == dict(ordered[1::2]) | {b"new": b"n"}


def test_a_load_holds_back_no_more_than_a_path_of_nodes(rows) -> None:
    limits = IndexLimits(leaf_entries=8, inner_entries=8, root_bytes=100)
    load = BulkLoad(new_id=rows.new_id, limits=limits)

    fed = load.feed((b"%05d" % at, b"12345678") for at in range(5000))
    rest = load.finish()

    assert len(rest.nodes) <= 3 * (rest.index.stats().height + 1)
    assert max(node.count for _, node in fed) <= 8


def test_an_empty_load_is_the_empty_index(rows) -> None:
    applied = BulkLoad(new_id=rows.new_id, limits=IndexLimits()).finish()

    assert applied.nodes == []
    assert applied.index.encode() == Index.EMPTY.encode()


@pytest.mark.parametrize("second", [b"a", b"b"])
def test_keys_out_of_order_are_refused(rows, second: bytes) -> None:
    load = BulkLoad(new_id=rows.new_id, limits=IndexLimits())
    load.feed([(b"b", b"1")])

    with pytest.raises(BadInput, match="ascending"):
        load.feed([(second, b"2")])
