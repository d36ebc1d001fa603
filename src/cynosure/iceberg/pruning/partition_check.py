"""Whether the metrics of a file contradict its partition.

A maintainer must not break: only what cannot be true is refused. Bounds may be missing or cut, and a file
without metrics is taken at its word.
"""

from collections.abc import Callable
from typing import Any

from cynosure.iceberg.manifests.bounds import read_bound
from cynosure.iceberg.manifests.content_file import ContentFile
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec
from cynosure.iceberg.pruning.transform import is_time, make_transform
from cynosure.iceberg.types import BINARY, STRING, Type, is_floating


def find_contradiction(
    file: ContentFile, spec: PartitionSpec, find_type: Callable[[int], Type | None]
) -> int | None:
    """The place of a partition value that the file's own metrics rule out; None when there is none."""
    for at, (field, value) in enumerate(zip(spec.fields, file.partition, strict=True)):
        type_ = find_type(field.sources[0]) if len(field.sources) == 1 else None
        if type_ is not None and _contradicts(file, field, type_, value):
            return at
    return None


def _contradicts(file: ContentFile, field: PartitionField, type_: Type, value: Any) -> bool:
    apply = make_transform(field.transform, type_)
    if apply is None or is_floating(type_):
        # What NaN and the zeros become is not the same for all writers.
        return False
    source = field.sources[0]
    lower, upper = _bound(file.lower_bounds, source, type_), _bound(file.upper_bounds, source, type_)
    nulls, count = (file.null_value_counts or {}).get(source), (file.value_counts or {}).get(source)
    if value is None:
        # A partition of nulls has no other values.
        return lower is not None or upper is not None or (nulls == 0 and count is not None and count > 0)
    if nulls is not None and nulls > 0:
        return True
    if field.transform.startswith("bucket"):
        is_exact = lower is not None and lower == upper and type_ not in (STRING, BINARY)
        return is_exact and apply(lower) != value
    low = None if lower is None else apply(lower)
    high = None if upper is None else apply(upper)
    if is_time(field.transform) and high is not None and high < 0:
        # Some writers rounded times before 1970 towards it.
        high += 1
    return (low is not None and value < low) or (high is not None and value > high)


def _bound(bounds: dict[int, bytes] | None, id_: int, type_: Type) -> Any:
    data = (bounds or {}).get(id_)
    return None if data is None else read_bound(type_, data)
