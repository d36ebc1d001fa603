"""`cynosure tables add-columns|set-partitioning|set-sort-order`: a table's shape, by names."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cynosure.cli.names import OfCatalog, OfNamespace, Separator, split_name
from cynosure.cli.remote import Remote, changing
from cynosure.cli.roles_output import print_done
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.iceberg.shaping.columns import NewColumn
    from cynosure.iceberg.shaping.partitioning import NewPartitionField
    from cynosure.iceberg.shaping.sort_order import NewSortField

Name = Annotated[str, typer.Argument(metavar="TABLE", help="The table.")]

_CALL: Final = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
_WITH_WIDTH: Final = re.compile(r"\s*(\d+)\s*,(.*)", re.DOTALL)
_NAMED: Final = re.compile(r"(.*\S)\s+as\s+(\S+)", re.IGNORECASE | re.DOTALL)
_NULLS: Final = re.compile(r"(.*\S)\s+nulls\s+(first|last)", re.IGNORECASE | re.DOTALL)
_DIRECTION: Final = re.compile(r"(.*\S)\s+(asc|desc)", re.IGNORECASE | re.DOTALL)
_OF_COLUMN: Final = ("identity", "year", "month", "day", "hour")
_OF_WIDTH: Final = ("bucket", "truncate")


@changing
def add_columns(
    to: Remote,
    table: Name,
    columns: Annotated[
        list[str], typer.Argument(metavar="COLUMN…", help="`NAME TYPE`, or a column as the API takes it.")
    ],
    catalog: OfCatalog,
    namespace: OfNamespace,
    separator: Separator = ".",
) -> None:
    """Add columns; the table gives them their ids, so nobody who changes it at the same time is in the way.

    A part of a struct is named with a dot, and a type with parts is JSON without ids. Example: `cynosure
    tables add-columns orders 'note string' 'address.zip string' 'price decimal(10, 2)' --catalog lake
    --namespace sales`
    """
    wanted = [parse_column(text) for text in columns]
    levels = split_name(namespace, separator)
    changed = to.run(lambda server: server.shape(catalog).add_columns(levels, table, wanted))
    names = [each.name if isinstance(each.name, str) else ".".join(each.name) for each in wanted]
    print_done(f"Table {table} has the new columns {', '.join(names)}.", changed, to.as_json)


@changing
def set_partitioning(
    to: Remote,
    table: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD…", help="`COLUMN`, `day(COLUMN)`, `bucket(16, COLUMN) as NAME` …"),
    ] = None,
    unpartitioned: Annotated[
        bool, typer.Option("--unpartitioned", help="Group files by nothing, instead of by fields.")
    ] = False,
    separator: Separator = ".",
) -> None:
    """Choose how new files of a table are grouped; those that are there stay as they are.

    Example: `cynosure tables set-partitioning orders 'day(ts)' 'bucket(16, id)' --catalog lake --namespace
    sales`
    """
    _check_chosen(fields, is_none=unpartitioned, flag="--unpartitioned")
    wanted = [parse_partition_field(text) for text in fields or ()]
    levels = split_name(namespace, separator)
    changed = to.run(lambda server: server.shape(catalog).set_partitioning(levels, table, wanted))
    text = f"is partitioned by {', '.join(fields)}" if fields else "is not partitioned any more"
    print_done(f"Table {table} {text}.", changed, to.as_json)


@changing
def set_sort_order(
    to: Remote,
    table: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD…", help="`COLUMN`, `COLUMN desc`, `day(COLUMN) asc nulls last` …"),
    ] = None,
    unsorted: Annotated[
        bool, typer.Option("--unsorted", help="Sort by nothing, instead of by fields.")
    ] = False,
    separator: Separator = ".",
) -> None:
    """Choose how writers sort the rows of a table; files that are there stay as they are.

    Example: `cynosure tables set-sort-order orders 'ts desc nulls last' id --catalog lake --namespace sales`
    """
    _check_chosen(fields, is_none=unsorted, flag="--unsorted")
    wanted = [parse_sort_field(text) for text in fields or ()]
    levels = split_name(namespace, separator)
    changed = to.run(lambda server: server.shape(catalog).set_sort_order(levels, table, wanted))
    text = f"is sorted by {', '.join(fields)}" if fields else "is not sorted any more"
    print_done(f"Table {table} {text}.", changed, to.as_json)


def parse_column(text: str) -> "NewColumn":
    """A column from `NAME TYPE`, where the type may be JSON, or from JSON as a whole."""
    import msgspec

    from cynosure.iceberg.shaping.columns import NewColumn

    text = text.strip()
    try:
        if text.startswith("{"):
            return msgspec.json.decode(text, type=NewColumn)
        name, *types = text.split(maxsplit=1)
        type_: Any = msgspec.json.decode(types[0]) if types[0].startswith("{") else types[0]
    except (IndexError, ValueError, msgspec.MsgspecError) as error:
        raise BadInput(
            "A column is a name and a type",
            field="COLUMN",
            fix="Write 'NAME TYPE', or a column as the API takes it, in JSON.",
            given=text,
            **({"reason": str(error)} if isinstance(error, msgspec.MsgspecError) else {}),
        ) from error
    return NewColumn(name=name, type=type_)


def parse_partition_field(text: str) -> "NewPartitionField":
    """A field from `COLUMN`, `day(COLUMN)` or `bucket(16, COLUMN)`, with `as NAME` behind it or not."""
    from cynosure.iceberg.shaping.partitioning import NewPartitionField

    named = _NAMED.fullmatch(text.strip())
    transform, column = _parse_value(named[1] if named else text)
    return NewPartitionField(column, transform, named[2] if named else None)


def parse_sort_field(text: str) -> "NewSortField":
    """A field as for partitioning, with `asc` or `desc`, `nulls first` or `nulls last` behind it or not."""
    import msgspec

    from cynosure.iceberg.shaping.sort_order import NewSortField

    said: dict[str, str] = {}
    rest = text.strip()
    if match := _NULLS.fullmatch(rest):
        rest, said["null-order"] = match[1], f"nulls-{match[2].lower()}"
    if match := _DIRECTION.fullmatch(rest):
        rest, said["direction"] = match[1], match[2].lower()
    transform, column = _parse_value(rest)
    return msgspec.convert({"source": column, "transform": transform, **said}, NewSortField)


def _parse_value(text: str) -> tuple[str, str]:
    """The transform as Iceberg writes it, and the column."""
    text = text.strip()
    call = _CALL.fullmatch(text)
    if call is None:
        if text:
            return "identity", text
    elif call[1].lower() in _OF_COLUMN and call[2].strip():
        return call[1].lower(), call[2].strip()
    elif call[1].lower() in _OF_WIDTH:
        parts = _WITH_WIDTH.fullmatch(call[2])
        if parts and parts[2].strip():
            return f"{call[1].lower()}[{parts[1]}]", parts[2].strip()
    raise BadInput(
        "A field is a column, or a transform of one",
        field="FIELD",
        fix="Write COLUMN, year|month|day|hour(COLUMN), bucket(N, COLUMN) or truncate(N, COLUMN).",
        given=text,
    )


def _check_chosen(fields: Sequence[str] | None, *, is_none: bool, flag: str) -> None:
    if bool(fields) == is_none:
        raise BadInput("Fields are needed, or the flag for none", field="FIELD", fix=f"Give one, or {flag}.")
