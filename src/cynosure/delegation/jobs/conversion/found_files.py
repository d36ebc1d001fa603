"""Which files there are below a place, and the partitions that their paths name (`k=v` directories).

A maintainer must not break: what is not understood is refused. A file that is left out is rows that are
missing, and nobody would notice.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from cynosure.delegation.jobs.port import JobFailed
from cynosure.iceberg import types
from cynosure.iceberg.types import Type

_PARQUET: Final = (".parquet", ".parq", ".pq")
_OTHERS: Final = ("_delta_log", ".hoodie", "_hudi")
_NOTHING: Final = "__HIVE_DEFAULT_PARTITION__"
_WHOLE: Final = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_EPOCH: Final = date(1970, 1, 1).toordinal()
_INT: Final = 2**31


class FoundFile(Struct, frozen=True):
    """One file."""

    path: str
    """Below the place, without a slash before it."""
    size_bytes: int
    partition: tuple[tuple[str, str | None], ...] = ()
    """Columns and values of its directories, the outermost first."""


def sort_out(found: Iterable[tuple[str, int]], *, is_table: bool) -> list[FoundFile]:
    """The Parquet files among these; `is_table`: Iceberg's own metadata lie there too."""
    files: list[FoundFile] = []
    for path, size_bytes in sorted(found):
        *folders, name = path.split("/")
        if any(each in _OTHERS for each in folders):
            raise refuse("The directory is a table of another format already", path=path)
        if folders[:1] == ["metadata"] and not name.endswith(_PARQUET):
            if not is_table and name.endswith(".metadata.json"):
                raise refuse("The directory is an Iceberg table already; register it", path=path)
            continue
        # As all engines do: what begins like this is not data.
        if any(each.startswith(("_", ".")) and "=" not in each for each in (*folders, name)):
            continue
        if not size_bytes and not name.endswith(_PARQUET):
            # Object stores have such marks for directories.
            continue
        if not name.endswith(_PARQUET):
            raise refuse("There is a file that is not Parquet by its name", path=path)
        files.append(FoundFile(path, size_bytes, _read_partition(folders, path)))
    if not files:
        raise refuse("There are no Parquet files", path="")
    names = {tuple(name for name, _ in each.partition) for each in files}
    if len(names) > 1:
        raise refuse(
            "Some files are in other partition directories than others",
            path=files[0].path,
            found="; ".join("/".join(each) or "none" for each in sorted(names)),
        )
    return files


def infer_types(files: Sequence[FoundFile]) -> dict[str, Type]:
    """The types of the columns that paths name, by all of their values."""
    found: dict[str, Type] = {}
    for at, (name, _) in enumerate(files[0].partition):
        values = {value for each in files if (value := each.partition[at][1]) is not None}
        if values and all(map(_WHOLE.fullmatch, values)):
            is_small = all(-_INT <= int(each) < _INT for each in values)
            found[name] = types.INT if is_small else types.LONG
        elif values and all(_DAY.fullmatch(each) and _is_day(each) for each in values):
            found[name] = types.DATE
        else:
            found[name] = types.STRING
    return found


def to_value(text: str | None, type_: Type, path: str) -> Any:
    """A value of a directory, as manifests hold it."""
    if text is None:
        return None
    if type_ == types.STRING:
        return text
    if type_ in (types.INT, types.LONG) and _WHOLE.fullmatch(text):
        return int(text)
    if type_ == types.DATE and _is_day(text):
        return date.fromisoformat(text).toordinal() - _EPOCH
    raise refuse("The value of a partition directory does not fit its column", path=path, value=text[:100])


def refuse(message: str, *, path: str, **details: Any) -> JobFailed:
    """Nothing is made of this directory."""
    return JobFailed(message, code="CONVERSION_REFUSED", status=409, file=path, **details)


def _read_partition(folders: list[str], path: str) -> tuple[tuple[str, str | None], ...]:
    pairs: list[tuple[str, str | None]] = []
    for at, folder in enumerate(folders):
        name, equals, value = folder.partition("=")
        if not equals or not name:
            if pairs or any("=" in each for each in folders[at:]):
                raise refuse("Partition directories and others are mixed", path=path)
            continue
        text = unquote(value)
        pairs.append((unquote(name), None if text == _NOTHING else text))
    if len({name for name, _ in pairs}) < len(pairs):
        raise refuse("Two partition directories have the same name", path=path)
    return tuple(pairs)


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
