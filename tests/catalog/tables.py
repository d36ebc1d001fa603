"""Shorthand of the tests about tables."""

import msgspec

from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.table_changes import TableChange
from cynosure.iceberg.requirements import TableRequirement
from cynosure.iceberg.updates import TableUpdate
from cynosure.testing.small_catalog import ROOT, SCHEMA

T = Identifier(("ns",), "t")


def updates(*wanted: dict) -> list[TableUpdate]:
    return msgspec.json.decode(msgspec.json.encode(wanted), type=list[TableUpdate])


def requirements(*wanted: dict) -> list[TableRequirement]:
    return msgspec.json.decode(msgspec.json.encode(wanted), type=list[TableRequirement])


def properties(**values: str) -> dict:
    return {"action": "set-properties", "updates": values}


def snapshot(
    number: int, *, at: TableAnswer | str, parent: int | None = None, sequence: int | None = None
) -> list[dict]:
    """What adds a snapshot to the table whose answer, or location, is given."""
    location = at if isinstance(at, str) else decoded(at)["location"]
    entry = {
        "snapshot-id": number,
        "sequence-number": sequence or number,
        "timestamp-ms": 1_900_000_000_000 + number,
        "manifest-list": f"{location}/metadata/snap-{number}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if parent is not None:
        entry["parent-snapshot-id"] = parent
    return [
        {"action": "add-snapshot", "snapshot": entry},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
    ]


async def make(catalog: OpenCatalog, table: Identifier = T, **options) -> TableAnswer:
    wanted = CreateTable(table.namespace, table.name, SCHEMA, **options)
    return (await create_table(catalog, ROOT, wanted)).answer


async def change(
    catalog: OpenCatalog, *wanted: dict, table: Identifier = T, requires: tuple[dict, ...] = ()
) -> TableAnswer:
    return await commit_table(catalog, ROOT, TableChange(table, requirements(*requires), updates(*wanted)))


def decoded(answer: TableAnswer) -> dict:
    return msgspec.json.decode(answer.metadata)
