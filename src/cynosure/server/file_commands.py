"""Operator commands on the files of tables: `tables.export`, `tables.sweep`.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults.
"""

from datetime import timedelta
from typing import Any

from msgspec import Struct

from cynosure.api.operator import OperatorCommand
from cynosure.catalog.files.sweep import Swept, sweep_strays
from cynosure.catalog.names import Identifier, check_name, check_namespace
from cynosure.catalog.operations.export_table import export_table
from cynosure.common.progress import Report
from cynosure.server.catalog_commands import InRealm, OpenDirectory


class ExportParams(InRealm, frozen=True):
    """For `tables.export`."""

    catalog: str
    table: tuple[str, ...]
    """Levels of the namespace, and the name."""


class Exported(Struct, frozen=True):
    """Where a table's metadata file is."""

    location: str


class SweepParams(InRealm, frozen=True):
    """For `tables.sweep`."""

    catalog: str
    grace_s: float | None = None
    """Younger files are left alone. Left out: as old as garbage must be to be collected."""
    is_thorough: bool = False
    is_dry_run: bool = False


def file_commands(open_directory: OpenDirectory) -> list[OperatorCommand[Any]]:
    """The commands, on the catalogs that `open_directory` gives."""

    async def export(params: ExportParams, report: Report) -> Exported:
        *levels, name = params.table or ("",)
        namespace = check_namespace(tuple(levels))
        table = Identifier(namespace, check_name(name, field="table"))
        async with open_directory(False) as directory:
            catalog = await directory.open(params.operator.realm, params.catalog)
            return Exported(await export_table(catalog, params.operator, table))

    async def sweep(params: SweepParams, report: Report) -> Swept:
        async with open_directory(False) as directory:
            catalog = await directory.open(params.operator.realm, params.catalog)
            return await sweep_strays(
                catalog,
                params.operator,
                grace=None if params.grace_s is None else timedelta(seconds=params.grace_s),
                is_thorough=params.is_thorough,
                is_dry_run=params.is_dry_run,
                report=report,
            )

    return [
        OperatorCommand("tables.export", ExportParams, export, "Write a metadata file again that is gone"),
        OperatorCommand("tables.sweep", SweepParams, sweep, "Remove files of commits that never came to be"),
    ]
