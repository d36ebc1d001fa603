"""A filter, ready to be asked which manifests and files of a table can match.

A maintainer must not break: made once for a plan, asked for many manifests, and never changed by being asked
(what it remembers is only what it would compute again).
"""

from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress
from typing import Any

from cynosure.iceberg.expressions.bound import BoundExpression
from cynosure.iceberg.expressions.fold import fold
from cynosure.iceberg.expressions.nodes import FALSE, TRUE, Always, And, Or
from cynosure.iceberg.manifests.bounds import read_bound
from cynosure.iceberg.manifests.columns import Constant, PackedInts
from cynosure.iceberg.manifests.content_file import Status
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import FieldSummary, ManifestFile
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.iceberg.pruning.metrics_filter import can_match
from cynosure.iceberg.pruning.normal import normalize
from cynosure.iceberg.pruning.project import PartitionLeaf, project
from cynosure.iceberg.pruning.residual import passing, residual
from cynosure.iceberg.pruning.values import PASSED_BY_NULL, make_range_test
from cynosure.iceberg.types import Type, is_floating


class Pruner:
    """What a filter says of the manifests and files of a table."""

    def __init__(
        self,
        expression: BoundExpression,
        specs: Mapping[int, PartitionSpec],
        partition_types: Mapping[int, tuple[Type | None, ...]],
    ) -> None:
        """`partition_types` are those of each spec's fields (`partitioning.partition_types`)."""
        self._expression = expression
        self._filter = normalize(expression)
        self._specs = specs
        self._types = partition_types
        self._projected = {id_: project(self._filter, spec, is_strict=False) for id_, spec in specs.items()}
        self._residual = lru_cache(maxsize=10_000)(self._find_residual)

    def keeps_manifest(self, listed: ManifestFile) -> bool:
        """Whether a file of the manifest can match, as its line in the list tells."""
        if not listed.has_live_files or self._filter == FALSE:
            return False
        projected = self._projected.get(listed.spec_id, TRUE)
        if listed.partitions is None or projected == TRUE:
            return True
        types = self._types[listed.spec_id]
        if len(listed.partitions) != len(types):
            return True
        answer: bool = fold(projected, partial(_expand_summaries, summaries=listed.partitions, types=types))
        return answer

    def rows(self, manifest: Manifest) -> "array[int]":
        """The numbers of the live files that can match, in ascending order."""
        mask = self._live(manifest)
        projected = self._projected.get(manifest.spec_id, TRUE)
        if projected != TRUE and len(self._specs[manifest.spec_id].fields) == len(manifest.partitions.fields):
            mask &= _partition_mask(manifest, projected)
        if mask and self._filter != TRUE:
            mask &= int.from_bytes(can_match(self._filter, manifest), "little")
        return array("I", compress(range(len(manifest)), mask.to_bytes(len(manifest), "little")))

    def residuals(self, manifest: Manifest, rows: Sequence[int]) -> list[BoundExpression]:
        """What is left of the filter for the rows of each of some files."""
        spec = self._specs.get(manifest.spec_id)
        if spec is None or not spec.fields or self._filter == TRUE:
            return [self._expression] * len(rows)
        numbers = manifest.partition_numbers.take(rows)
        found = {
            number: self._residual(manifest.spec_id, manifest.partitions.get(number or 0))
            for number in set(numbers)
        }
        return [found[number] for number in numbers]

    def _find_residual(self, spec_id: int, partition: tuple[Any, ...]) -> BoundExpression:
        spec = self._specs[spec_id]
        if len(spec.fields) != len(partition):
            return self._expression
        return residual(self._expression, spec, partition)

    def _live(self, manifest: Manifest) -> int:
        statuses = manifest.statuses
        if isinstance(statuses, Constant):
            return (
                0 if statuses.value == Status.DELETED else int.from_bytes(b"\x01" * len(manifest), "little")
            )
        return int.from_bytes(bytes(status != Status.DELETED for status in statuses), "little")


def _partition_mask(manifest: Manifest, projected: Any) -> int:
    partitions = manifest.partitions
    # A question for each different partition, not for each file.
    answers = passing(projected, partitions).to_bytes(partitions.count, "little")
    numbers = manifest.partition_numbers
    if isinstance(numbers, PackedInts) and numbers.values.typecode == "B":
        return int.from_bytes(numbers.values.tobytes().translate(answers.ljust(256, b"\x00")), "little")
    return int.from_bytes(bytes([answers[number or 0] for number in numbers]), "little")


def _expand_summaries(
    node: Any, *, summaries: tuple[FieldSummary, ...], types: tuple[Type | None, ...]
) -> Any:
    match node:
        case Always(answer):
            return (), lambda _: answer
        case And(left, right):
            return (left, right), all
        case Or(left, right):
            return (left, right), any
    return (), lambda _: _can_match(node, summaries[node.at], types[node.at])


def _can_match(leaf: PartitionLeaf, summary: FieldSummary, type_: Type | None) -> bool:
    """Whether some partition of a manifest can pass, as the summary of one field tells."""
    if type_ is None:
        return True
    may_be_nan = is_floating(type_) and summary.contains_nan is not False
    if leaf.op == "is-nan":
        return may_be_nan
    if summary.contains_null and leaf.op in PASSED_BY_NULL:
        return True
    if leaf.op == "is-null":
        return False
    if summary.lower_bound is None and summary.upper_bound is None:
        # Without bounds, all values are null or NaN.
        return may_be_nan
    if leaf.op in ("not-null", "not-nan"):
        return True
    if may_be_nan and leaf.op in ("gt", "gt-eq", "not-eq", "not-in"):
        return True
    low = None if summary.lower_bound is None else read_bound(type_, summary.lower_bound)
    high = None if summary.upper_bound is None else read_bound(type_, summary.upper_bound)
    return make_range_test(leaf.op, leaf.values)(low, high)
