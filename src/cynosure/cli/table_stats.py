"""`cynosure tables stats`: the files of a table, counted and measured."""

from typing import Annotated, Any

import typer

from cynosure.cli.names import OfCatalog, OfNamespace, Separator, format_size, format_time, split_name
from cynosure.cli.output import print_fields, print_json, print_table
from cynosure.cli.remote import Remote, connected
from cynosure.common.errors import BadInput


@connected
def stats(
    to: Remote,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table.")],
    catalog: OfCatalog,
    namespace: OfNamespace,
    separator: Separator = ".",
    snapshot_id: Annotated[
        int | None, typer.Option("--snapshot-id", metavar="ID", help="Of this snapshot, not the current one.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Of the head of this branch or tag.")
    ] = None,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", min=0, max=1000, help="Largest partitions to list.")
    ] = 10,
) -> None:
    """Count the files of a table: sizes, small files, deletes, manifests, and how partitions differ.

    Partitions are listed with their values to those who may read the table's data.

    Example: `cynosure tables stats orders --catalog lake --namespace sales --branch audit`
    """
    if snapshot_id is not None and branch is not None:
        raise BadInput(
            "A snapshot is named twice", field="--branch", fix="Give --snapshot-id or --branch, not both."
        )
    query = {"partitions": str(partitions)}
    if snapshot_id is not None:
        query["snapshot-id"] = str(snapshot_id)
    if branch is not None:
        query["branch"] = branch
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.catalog(catalog).load_statistics(levels, table, query))
    if to.as_json:
        print_json(found)
    else:
        _print(table, found)


def _print(table: str, found: dict[str, Any]) -> None:
    data, small, deletes, manifests = (
        found[name] for name in ("data", "small-files", "deletes", "manifests")
    )
    of_kind: dict[str, dict[str, int]] = deletes["files"]
    print_fields(
        {
            "table": table,
            "snapshot": _snapshot(found),
            "snapshots kept": found["snapshots"],
            "data files": f"{data['files']}, {data['records']} records, {format_size(data['bytes'])}",
            "file sizes": _spread(found.get("file-sizes"), "min", "median", "p90", "max"),
            "small files": (
                f"{small['files']} ({small['ratio']:.0%}), below {format_size(small['below-bytes'])}"
            ),
            **{
                f"{kind.replace('-', ' ')}{'' if kind.endswith('s') else ' deletes'}": (
                    f"{each['files']}, {each['records']} records, {format_size(each['bytes'])}"
                )
                for kind, each in of_kind.items()
                if each["files"]
            },
            "deleted rows": f"{deletes['deleted-rows']} by position ({deletes['ratio']:.1%})",
            "files with deletes": deletes["files-with-deletes"],
            "manifests": (
                f"{manifests['data']} of data, {manifests['deletes']} of deletes, "
                f"{format_size(manifests['bytes'])}, "
                f"{manifests['small']} below {format_size(manifests['small-below-bytes'])}"
            ),
        }
    )
    _print_partitions(found["partitions"])


def _print_partitions(found: dict[str, Any]) -> None:
    sizes, files = found.get("bytes"), found.get("files")
    print()
    print_fields(
        {
            "partitions": found["count"],
            "bytes in each": _spread(sizes, "min", "median", "max"),
            "skew": None if not sizes or sizes["skew"] is None else f"{sizes['skew']:g} times the median",
            "files in each": files
            and ", ".join(f"{name} {files[name]}" for name in ("min", "median", "max")),
        }
    )
    if found["largest"]:
        print()
        print_table(
            ("PARTITION", "SPEC", "FILES", "RECORDS", "BYTES"),
            [
                (_values(each), each["spec-id"], each["files"], each["records"], format_size(each["bytes"]))
                for each in found["largest"]
            ],
        )


def _snapshot(found: dict[str, Any]) -> str:
    if "snapshot-id" not in found:
        return "none yet"
    return f"{found['snapshot-id']} of {format_time(found['snapshot-timestamp-ms'])}"


def _spread(numbers: dict[str, int] | None, *names: str) -> str | None:
    return ", ".join(f"{name} {format_size(numbers[name])}" for name in names) if numbers else None


def _values(partition: dict[str, Any]) -> str | None:
    values: dict[str, Any] | None = partition.get("values")
    if values is None:
        return None
    shown = (f"{name}={'null' if value is None else value}" for name, value in values.items())
    return "/".join(shown) or "whole table"
