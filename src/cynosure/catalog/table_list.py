"""Lists of tables in files, for `bulk_import`: lines of JSON, or CSV with a heading.

    {"namespace": ["sales", "eu"], "name": "orders", "metadata-location": "s3://…", "location": "s3://…"}

    namespace,name,metadata-location,location
    sales.eu,orders,s3://…,s3://…

`location` may be left out or empty. In CSV the levels of a namespace are joined by dots, so namespaces with
dots in them need JSON.

Must not break: files are read line by line; they may have millions.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

import msgspec
from msgspec import Struct

from cynosure.catalog.bulk_import import ListedTable
from cynosure.catalog.names import Identifier
from cynosure.common.errors import BadInput, NotFound

_REQUIRED: Final = ("namespace", "name", "metadata-location")


class _Line(Struct, frozen=True, rename="kebab"):
    namespace: tuple[str, ...]
    name: str
    metadata_location: str
    location: str = ""


_decode = msgspec.json.Decoder(_Line).decode


def read_tables(path: Path) -> Iterator[ListedTable]:
    """The tables of a file, in its order. `BadInput` tells the line that is wrong."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            is_json = file.readline().lstrip().startswith("{")
            file.seek(0)
            yield from _read_json(file) if is_json else _read_csv(file)
    except FileNotFoundError as error:
        raise NotFound("There is no such file", fix="Name the list of tables.", path=str(path)) from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(
            "The list of tables cannot be read",
            field="file",
            fix="Give a file of JSON lines or CSV in UTF-8.",
            path=str(path),
            reason=str(error),
        ) from error


def _read_json(file: TextIO) -> Iterator[ListedTable]:
    for number, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            line = _decode(text)
        except msgspec.DecodeError as error:
            raise _refuse(number, str(error)) from error
        yield _listed(line)


def _read_csv(file: TextIO) -> Iterator[ListedTable]:
    rows = csv.DictReader(file)
    missing = [name for name in _REQUIRED if name not in (rows.fieldnames or ())]
    if missing:
        raise _refuse(1, f"the heading lacks {', '.join(missing)}")
    for row in rows:
        namespace, name, metadata_location = (row[column] for column in _REQUIRED)
        if metadata_location is None or None in row:
            raise _refuse(rows.line_num, "a row has fewer or more fields than the heading")
        location = row.get("location") or ""
        yield _listed(_Line(tuple(namespace.split(".")), name, metadata_location, location))


def _listed(line: _Line) -> ListedTable:
    return ListedTable(Identifier(line.namespace, line.name), line.metadata_location, line.location)


def _refuse(line: int, reason: str) -> BadInput:
    return BadInput(
        "A line of the list of tables cannot be read",
        field="file",
        fix="Give namespace, name and metadata-location in every line.",
        line=line,
        reason=reason,
    )
