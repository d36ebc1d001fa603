import gc
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.common.errors import CorruptObject, Damaged, NewerFormat
from cynosure.persistence.index.keys import encode_key
from cynosure.persistence.index.node import Inner, Leaf, Node, decode_node, separator_between

GOLDEN = Path(__file__).parents[2] / "golden" / "index"
KEYS = st.lists(st.sampled_from(b"ab\x01\xff"), max_size=6).map(bytes)
VALUES = st.binary(max_size=3) | st.binary(min_size=8, max_size=8)
ENTRIES = st.dictionaries(KEYS, VALUES, max_size=40)


def named(count: int, *, width: int = 8) -> dict[bytes, bytes]:
    """Entries like those of a catalog."""
    chance = random.Random(count)
    return {
        encode_key("sales_3", f"orders_{at // 90:03d}", f"daily_events_{at:06d}"): chance.randbytes(width)
        for at in range(count)
    }


def contents(node: Node) -> tuple[object, ...]:
    if isinstance(node, Leaf):
        return (0, list(node.items()))
    return (node.level, node.separators, list(node.children))


@given(ENTRIES)
def test_a_leaf_keeps_its_entries_through_its_stored_form(entries: dict[bytes, bytes]) -> None:
    leaf = Leaf.of(sorted(entries.items()))
    decoded = decode_node(leaf.encode())

    assert isinstance(decoded, Leaf)
    for node in (leaf, decoded):
        assert list(node.items()) == sorted(entries.items())
        assert [node.values[at] for at in range(node.count)] == [
            value for _, value in sorted(entries.items())
        ]
    assert decoded.encode() == leaf.encode()


@given(ENTRIES, st.lists(st.sampled_from(b"ab\x01\xff\x00"), max_size=8).map(bytes))
def test_a_leaf_finds_every_key_it_has_and_no_other(entries: dict[bytes, bytes], other: bytes) -> None:
    leaf = Leaf.of(sorted(entries.items()))

    for key in (*entries, other):
        assert leaf.find(key) == entries.get(key)


def test_a_key_with_nul_does_not_match_across_two_neighbours() -> None:
    leaf = Leaf.of([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])

    assert [leaf.find(key) for key in (b"a\0b", b"\0", b"b\0c", b"\0b")] == [None] * 4


@given(ENTRIES, st.dictionaries(KEYS, VALUES | st.none(), max_size=20))
def test_a_leaf_applies_changes_as_a_dict_does_and_stays_as_it_was(
    entries: dict[bytes, bytes], changes: dict[bytes, bytes | None]
) -> None:
    leaf = Leaf.of(sorted(entries.items()))
    merged = {key: value for key, value in (entries | changes).items() if value is not None}

    changed = leaf.apply(sorted(changes), [changes[key] for key in sorted(changes)])

    assert dict(changed.items()) == merged
    assert dict(leaf.items()) == entries
    assert (changed is leaf) == (merged == entries)


@given(
    st.sets(KEYS.filter(bool), max_size=30).map(sorted),
    st.integers(min_value=1, max_value=32),
    st.randoms(use_true_random=False),
)
def test_an_inner_node_keeps_separators_and_children(
    separators: list[bytes], level: int, chance: random.Random
) -> None:
    inner = Inner.of(level, separators, [chance.getrandbits(63) for _ in range(len(separators) + 1)])

    assert contents(decode_node(inner.encode())) == contents(inner)


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_a_separator_divides_two_keys_and_is_as_short_as_can_be(one: bytes, other: bytes) -> None:
    low, high = sorted((one, other))
    if low == high:
        return

    separator = separator_between(low, high)

    assert low < separator <= high
    assert not any(low < high[:size] for size in range(len(separator)))


def test_replaced_values_reuse_the_packed_keys() -> None:
    entries = named(100)
    leaf = Leaf.of(entries.items())
    leaf.encode()
    key = list(entries)[40]

    changed = leaf.apply([key], [b"12345678"])

    assert changed.keys is leaf.keys
    assert changed.find(key) == b"12345678"


def test_common_prefixes_and_repetition_are_not_stored() -> None:
    entries = named(128)
    raw_bytes = sum(len(key) + len(value) for key, value in entries.items())

    assert len(Leaf.of(entries.items()).encode()) < raw_bytes / 3


def golden_nodes() -> dict[str, Node]:
    """Small enough to be stored as they are: what a compressor makes may differ between its versions."""
    return {
        "leaf-empty": Leaf.of(()),
        "leaf-fixed-width": Leaf.of([(b"ns\x01a", b"00000001"), (b"ns\x01b", b"00000002")]),
        "leaf-variable-width": Leaf.of([(b"", b""), (b"a", b"xyz"), (b"b\xff", b"z")]),
        "inner": Inner.of(1, [b"ns\x01m", b"ns\x01t"], [1, 2**62 + 5, 2**63 - 1]),
        "inner-one-child": Inner.of(2, [], [77]),
    }


@pytest.mark.parametrize("name", sorted(golden_nodes()))
def test_small_nodes_are_stored_as_the_golden_bytes(name: str) -> None:
    stored = (GOLDEN / f"{name}.hex").read_text().strip()

    assert golden_nodes()[name].encode().hex() == stored
    assert contents(decode_node(bytes.fromhex(stored))) == contents(golden_nodes()[name])


@pytest.mark.parametrize(("name", "width"), [("leaf-compressed-keys", 8), ("leaf-compressed-values", 24)])
def test_golden_compressed_nodes_stay_readable(name: str, width: int) -> None:
    stored = bytes.fromhex((GOLDEN / f"{name}.hex").read_text().strip())
    value = bytes(range(width))

    node = decode_node(stored)

    assert contents(node) == (0, [(key, value) for key in named(60)])


def test_a_newer_format_is_named_as_such() -> None:
    newer = b"\x02" + Leaf.of([(b"a", b"1")]).encode()[1:]

    with pytest.raises(NewerFormat, match="Upgrade this server"):
        decode_node(newer)


@pytest.mark.parametrize("name", ["compressed", *sorted(golden_nodes())])
def test_every_truncation_is_reported_as_corrupt(name: str) -> None:
    stored = (golden_nodes() | {"compressed": Leaf.of(named(60).items())})[name].encode()

    for size in range(len(stored)):
        with pytest.raises(CorruptObject):
            decode_node(stored[:size])
    with pytest.raises(CorruptObject):
        decode_node(stored + b"\0")


@settings(max_examples=400)
@given(st.data())
def test_damaged_bytes_never_raise_anything_but_damage(data: st.DataObject) -> None:
    nodes = [*golden_nodes().values(), Leaf.of(named(60).items()), Leaf.of(named(40, width=24).items())]
    stored = bytearray(data.draw(st.sampled_from(nodes)).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))

    try:
        node = decode_node(bytes(stored))
        if isinstance(node, Leaf):
            node.find(b"ns\x01a")
            list(node.items())
        else:
            node.child_for(b"ns\x01a")
        node.encode()
    except Damaged:
        pass


@pytest.mark.parametrize("kind", ["leaf", "wide leaf", "inner"])
def test_the_weight_is_the_memory_within_a_fifth(kind: str) -> None:
    def make(at: int) -> bytes:
        keys = [
            encode_key(f"sales_{at}", f"orders_{row // 30:03d}", f"daily_{row:06d}") for row in range(100)
        ]
        if kind == "inner":
            return Inner.of(1, keys, range(101)).encode()
        values = [b"v" * (row % 40 if kind == "wide leaf" else 8) for row in range(100)]
        return Leaf.of(zip(keys, values, strict=True)).encode()

    stored = [make(at) for at in range(200)]
    decode_node(stored[0]).encode()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        nodes = [decode_node(data) for data in stored]
        for node in nodes:
            if isinstance(node, Leaf):
                node.find(b"made by the first lookup")
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert sum(node.weight_bytes for node in nodes) == pytest.approx(held, rel=0.2)
