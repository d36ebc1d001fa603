"""Operator commands on tables, `tables.*`: import many at once.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults.
"""

from pathlib import Path

from cynosure.api.operator import OperatorCommand
from cynosure.catalog.bulk_import import Imported, import_tables
from cynosure.catalog.table_list import read_tables
from cynosure.common.progress import Report
from cynosure.server.catalog_commands import InRealm, OpenDirectory


class ImportParams(InRealm, frozen=True):
    """For `tables.import`."""

    catalog: str
    file: str
    """Absolute path of the list of tables, on the server's machine."""


def table_commands(open_directory: OpenDirectory) -> list[OperatorCommand[ImportParams]]:
    """The commands, on the catalogs that `open_directory` gives."""

    async def run_import(params: ImportParams, report: Report) -> Imported:
        async with open_directory(False) as directory:
            catalog = await directory.open(params.operator.realm, params.catalog)
            return await import_tables(
                catalog, params.operator, read_tables(Path(params.file)), report=report
            )

    return [
        OperatorCommand("tables.import", ImportParams, run_import, "Import tables into an empty catalog"),
    ]
