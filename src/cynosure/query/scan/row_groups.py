"""Whether any row of a row group can pass, by the statistics in its footer.

A maintainer must not break: when in doubt, it can. Statistics are bounds, perhaps cut; only types whose order
in files is the order of their values are looked at.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, Final

from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import FALSE, Always, And, Or
from cynosure.iceberg.pruning.normal import Leaf, Normal
from cynosure.iceberg.pruning.values import make_range_test
from cynosure.iceberg.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, DecimalType, Type
from cynosure.query.scan.parquet import ParquetSource, RowGroup
from cynosure.query.scan.prepared import Prepared
from cynosure.query.scan.shape import FileColumn
from cynosure.query.scan_task import DataFile

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY_MICROS: Final = timedelta(days=1) // _MICROSECOND


class GroupTest:
    """The tests of a task on row groups of one file.

    The file's residual is one of them: it knows the partition's values, which the file need not have.
    """

    def __init__(
        self, prepared: Prepared, file: DataFile, columns: Sequence[FileColumn], parquet: ParquetSource
    ) -> None:
        self._tests = prepared.find_tests(file.residual)
        self._leaves = {
            each.field.id: parquet.leaf_of(each.position) for each in columns if each.position is not None
        }
        self._parquet = parquet

    def can_pass(self, group: RowGroup) -> bool:
        """Whether a row may be shown."""
        if not self._tests:
            return True
        about = self._parquet.metadata.row_group(group.number)
        expand = partial(self._expand, about=about)
        return all(fold(test, expand) for test in self._tests)

    def _expand(self, node: Normal, *, about: Any) -> tuple[Sequence[Normal], Join[bool]]:
        match node:
            case And(left, right):
                return (left, right), all
            case Or(left, right):
                return (left, right), any
            case Always():
                return (), lambda _: node != FALSE
            case Leaf():
                answer = self._can_hold(node, about)
                return (), lambda _: answer
        return (), lambda _: True

    def _can_hold(self, leaf: Leaf, about: Any) -> bool:
        at = self._leaves.get(leaf.source.id)
        convert = _find_reader(leaf.source.type)
        if at is None or convert is None or leaf.term is not leaf.source:
            return True
        column = about.column(at)
        found = column.statistics if column.is_stats_set else None
        if found is None:
            return True
        nulls = found.null_count if found.has_null_count else None
        if leaf.op == "is-null":
            return nulls != 0
        if nulls is not None and nulls == about.num_rows:
            return False
        if not found.has_min_max or not leaf.values:
            return True
        try:
            low, high = convert(found.min), convert(found.max)
        except (ValueError, OverflowError, TypeError, AttributeError):
            # In doubt it can: files of tables that were not written as they say are read all the same.
            return True
        return make_range_test(leaf.op, leaf.values)(low, high)


def _find_reader(type_: Type) -> Callable[[Any], Any] | None:
    return _as_it_is if isinstance(type_, DecimalType) else _READERS.get(type_)


def _as_it_is(value: Any) -> Any:
    return value


def _read_days(value: date) -> int:
    return value.toordinal() - _EPOCH.toordinal()


def _read_micros(value: date) -> int:
    if not isinstance(value, datetime):
        # A day of before the column was made a timestamp.
        return _read_days(value) * _DAY_MICROS
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


_READERS: Final[dict[Type, Callable[[Any], Any]]] = {
    INT: _as_it_is,
    LONG: _as_it_is,
    STRING: _as_it_is,
    DATE: _read_days,
    TIMESTAMP: _read_micros,
    TIMESTAMPTZ: _read_micros,
}
