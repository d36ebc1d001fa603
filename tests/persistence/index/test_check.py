import pytest

from cynosure.common.errors import CorruptObject
from cynosure.persistence.index import Index, Inner, Leaf, check
from cynosure.persistence.index.buffer import EMPTY_BUFFER


def made_of(rows, root: Inner, **leaves: Leaf) -> Index:
    rows.write((child, leaf) for child, leaf in zip(root.children, leaves.values(), strict=True))
    return Index(root, EMPTY_BUFFER)


GOOD = Leaf.of([(b"a", b"1")])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("second", "rule"),
    [
        (Leaf.of([(b"z", b"1"), (b"y", b"2")]), "not in order"),
        (Leaf.of([(b"b", b"1")]), "another range"),
        (Leaf.of(()), "empty"),
        (Inner.of(1, [], [1]), "another level"),
    ],
)
async def test_a_broken_rule_is_named(rows, second: Leaf, rule: str) -> None:
    index = made_of(rows, Inner.of(1, [b"m"], [7, 8]), first=GOOD, second=second)

    with pytest.raises(CorruptObject, match=rule):
        await check(rows, index)


@pytest.mark.anyio
async def test_a_node_reached_twice_is_reported(rows) -> None:
    rows.write([(7, Leaf.of([(b"a", b"1")]))])
    index = Index(Inner.of(2, [b"m"], [8, 9]), EMPTY_BUFFER)
    rows.write([(8, Inner.of(1, [], [7])), (9, Inner.of(1, [b"n"], [10, 10])), (10, Leaf.of([(b"n", b"1")]))])

    with pytest.raises(CorruptObject):
        await check(rows, index)


@pytest.mark.anyio
async def test_the_shape_counts_what_is_there(rows) -> None:
    index = made_of(
        rows, Inner.of(1, [b"m"], [7, 8]), first=GOOD, second=Leaf.of([(b"m", b"1"), (b"n", b"2")])
    )

    shape = await check(rows, index)

    assert (shape.height, shape.inner_nodes, shape.leaf_nodes, shape.entries) == (1, 0, 2, 3)
    assert shape.node_ids == {7, 8}
