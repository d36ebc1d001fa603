"""What is left of a filter for the rows of one partition.

A maintainer must not break: what is left holds for the same rows of the partition as the filter does.
"""

from collections.abc import Sequence
from functools import partial
from math import isnan
from typing import Any

from cynosure.iceberg.expressions.bound import BoundExpression, BoundUnary
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.negate import rewrite_not
from cynosure.iceberg.expressions.nodes import FALSE, TRUE, Always, And, Or
from cynosure.iceberg.manifests.manifest import Partitions
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.iceberg.pruning.normal import Leaf, all_of, any_of, normalize
from cynosure.iceberg.pruning.project import PartitionLeaf, project
from cynosure.iceberg.pruning.values import make_test, widen_zero


def residual(expression: BoundExpression, spec: PartitionSpec, partition: tuple[Any, ...]) -> BoundExpression:
    """The filter without what the partition already answers, in the words of the filter."""
    return fold(rewrite_not(expression), partial(_expand, spec=spec, partition=partition))


def passes(projected: Any, partition: tuple[Any, ...], *, is_strict: bool = False) -> bool:
    """Whether a partition passes a projected filter."""
    return fold(projected, partial(_expand_test, partition=partition, is_strict=is_strict))


def _expand(
    node: Any, *, spec: PartitionSpec, partition: tuple[Any, ...]
) -> tuple[Sequence[Any], Join[BoundExpression]]:
    match node:
        case Always():
            return (), lambda _: node
        case And(left, right):
            return (left, right), all_of
        case Or(left, right):
            return (left, right), any_of
    # A complement of an order comparison becomes several leaves; as one question, they answer it.
    one = normalize(node)
    answer = node
    # Of these, that NaN is in no order is not certain: to some engines it is the largest number.
    certain = one if isinstance(node, BoundUnary) else fold(one, _expand_without_nan)
    if passes(project(certain, spec, is_strict=True), partition, is_strict=True):
        answer = TRUE
    elif not passes(project(one, spec, is_strict=False), partition):
        answer = FALSE
    return (), lambda _: answer


def _expand_without_nan(node: Any) -> tuple[Sequence[Any], Join[Any]]:
    match node:
        case And(left, right):
            return (left, right), all_of
        case Or(left, right):
            return (left, right), any_of
        case Leaf("is-nan"):
            return (), lambda _: FALSE
    return (), lambda _: node


def _expand_test(
    node: Any, *, partition: tuple[Any, ...], is_strict: bool
) -> tuple[Sequence[Any], Join[bool]]:
    match node:
        case Always(answer):
            return (), lambda _: answer
        case And(left, right):
            return (left, right), all
        case Or(left, right):
            return (left, right), any
    return (), lambda _: _passes(node, partition[node.at], is_strict=is_strict)


def passing(projected: Any, partitions: Partitions) -> int:
    """Which of many partitions pass: one byte of a large number for each, 1 or 0."""
    return fold(projected, partial(_expand_tests, partitions=partitions))


def _expand_tests(node: Any, *, partitions: Partitions) -> tuple[Sequence[Any], Join[int]]:
    match node:
        case Always(answer):
            each = b"\x01" if answer else b"\x00"
            return (), lambda _: int.from_bytes(each * partitions.count, "little")
        case And(left, right):
            return (left, right), lambda parts: parts[0] & parts[1]
        case Or(left, right):
            return (left, right), lambda parts: parts[0] | parts[1]
    column = partitions.values[node.at]
    if any(isinstance(value, float) for value in node.values):
        return (), lambda _: int.from_bytes(
            bytes(_passes(node, one, is_strict=False) for one in column), "little"
        )
    test = make_test(node.op, node.values)
    return (), lambda _: int.from_bytes(bytes(map(test, column)), "little")


def _passes(leaf: PartitionLeaf, value: Any, *, is_strict: bool) -> bool:
    op = leaf.op if is_strict else widen_zero(leaf.op, leaf.values)
    if isinstance(value, float) and leaf.values and (isnan(value) or (value == 0 and 0 in leaf.values)):
        # Engines differ on how NaN compares and on whether the zeros are equal: then nothing is certain.
        return not is_strict
    return make_test(op, leaf.values)(value)
