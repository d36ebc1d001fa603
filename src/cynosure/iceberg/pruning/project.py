"""What a filter on columns says of partition values.

*Inclusive*: every row that matches is in a partition that passes. *Strict*: every row of a partition that
passes matches.

A maintainer must not break: a question that a transform does not answer becomes "yes" inclusively and "no"
strictly.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from cynosure.iceberg.expressions.bound import BoundTransform
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import FALSE, TRUE, Always, And, Or
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec
from cynosure.iceberg.pruning.normal import Leaf, Normal, Unknown, all_of, any_of
from cynosure.iceberg.pruning.transform import Apply, is_time, make_transform, step
from cynosure.iceberg.types import Type

_NULLS: Final = ("is-null", "not-null")


class PartitionLeaf(Struct, frozen=True):
    """A question about one field of a partition."""

    at: int
    """The field's place in the spec."""
    op: str
    values: tuple[Any, ...] = ()


def project(filter_: Normal, spec: PartitionSpec, *, is_strict: bool) -> Any:
    """The filter on partitions: `Always`, `And`, `Or` and `PartitionLeaf`."""
    return fold(filter_, partial(_expand, spec=spec, is_strict=is_strict))


def _expand(node: Any, *, spec: PartitionSpec, is_strict: bool) -> tuple[Sequence[Any], Join[Any]]:
    match node:
        case Always():
            return (), lambda _: node
        case And(left, right):
            return (left, right), all_of
        case Or(left, right):
            return (left, right), any_of
        case Unknown():
            return (), lambda _: FALSE if is_strict else TRUE
    answer = project_leaf(node, spec, is_strict=is_strict)
    return (), lambda _: answer


def project_leaf(leaf: Leaf, spec: PartitionSpec, *, is_strict: bool) -> Any:
    """What one question says of the partitions of a spec."""
    found = []
    for at, field in enumerate(spec.fields):
        if field.sources != (leaf.source.id,):
            continue
        one = _project_field(leaf, field, is_strict=is_strict)
        if one is not None:
            found.append(PartitionLeaf(at, one[0], one[1]) if one[0] else FALSE)
    # Several fields of one column all tell something: together more inclusively, any of them strictly.
    return any_of(found) if is_strict else all_of(found)


_Answer = tuple[str, tuple[Any, ...]] | None
"""A test on the partition value; an empty name stands for a test that nothing passes."""


def _project_field(leaf: Leaf, field: PartitionField, *, is_strict: bool) -> _Answer:
    transform = field.transform
    if isinstance(leaf.term, BoundTransform):
        # A question about the very value that the table is partitioned by.
        asked = leaf.term.transform + (f"[{leaf.term.parameter}]" if leaf.term.parameter is not None else "")
        return (leaf.op, leaf.values) if asked == transform else None
    if transform == "identity":
        return leaf.op, leaf.values
    type_ = leaf.source.type
    apply = make_transform(transform, type_)
    if apply is None or leaf.op in ("is-nan", "not-nan"):
        return None
    if leaf.op in _NULLS:
        return leaf.op, ()
    if transform.startswith("bucket"):
        return _project_bucket(leaf, apply, is_strict=is_strict)
    if isinstance(leaf.values[0], str | bytes):
        return _project_prefix(leaf, apply, int(transform[9:-1]), is_strict=is_strict)
    answer = _project_ordered(leaf, apply, type_, is_strict=is_strict)
    if answer is not None and is_time(transform):
        return _widen_before_1970(answer)
    return answer


def _project_bucket(leaf: Leaf, apply: Apply, *, is_strict: bool) -> _Answer:
    wanted = ("not-eq", "not-in") if is_strict else ("eq", "in")
    if leaf.op not in wanted:
        return None
    return ("not-in" if is_strict else "in"), tuple({apply(value) for value in leaf.values})


def _project_ordered(leaf: Leaf, apply: Apply, type_: Type, *, is_strict: bool) -> _Answer:
    """For transforms that keep the order of numbers."""
    values = leaf.values
    if leaf.op in (("not-eq", "not-in") if is_strict else ("eq", "in")):
        return ("not-in" if is_strict else "in"), tuple({apply(value) for value in values})
    least = step(type_)
    if leaf.op not in ("lt", "lt-eq", "gt", "gt-eq") or least is None:
        return None
    value = values[0]
    if is_strict:
        # A whole step of the transform lies between the partition and the value.
        match leaf.op:
            case "lt":
                return "lt", (apply(value),)
            case "lt-eq":
                return "lt", (apply(value + least),)
            case "gt":
                return "gt", (apply(value),)
        return "gt", (apply(value - least),)
    match leaf.op:
        case "lt":
            return "lt-eq", (apply(value - least),)
        case "lt-eq":
            return "lt-eq", (apply(value),)
        case "gt":
            return "gt-eq", (apply(value + least),)
    return "gt-eq", (apply(value),)


def _project_prefix(leaf: Leaf, apply: Apply, width: int, *, is_strict: bool) -> _Answer:
    """For text and bytes that are cut."""
    value = leaf.values[0]
    cut = apply(value)
    match leaf.op:
        case "eq" | "in" if not is_strict:
            return "in", tuple({apply(one) for one in leaf.values})
        case "not-eq" | "not-in" if is_strict:
            return "not-in", tuple({apply(one) for one in leaf.values})
        case "lt" | "lt-eq":
            return ("lt" if is_strict else "lt-eq"), (cut,)
        case "gt" | "gt-eq":
            return ("gt" if is_strict else "gt-eq"), (cut,)
        case "starts-with":
            if len(value) <= width:
                return "starts-with", (value,)
            return None if is_strict else ("eq", (cut,))
        case "not-starts-with":
            if len(value) <= width:
                return "not-starts-with", (value,)
            return ("not-eq", (cut,)) if is_strict else None
    return None


def _widen_before_1970(answer: tuple[str, tuple[Any, ...]]) -> _Answer:
    """Some writers rounded times before 1970 towards it: their partition is one too high."""
    op, values = answer
    match op:
        case "lt-eq" | "gt" if values[0] < 0:
            return op, (values[0] + 1,)
        case "in" | "not-in":
            return op, tuple({*values, *(value + 1 for value in values if value < 0)})
    return answer
