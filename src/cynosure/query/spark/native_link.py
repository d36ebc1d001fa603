"""A statement in a driver that reads natively: its inner session, and the files that it has open.

A maintainer must not break: the inner session gets no setting that is secret: Spark tells settings of a
session to every task and every listener.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from cynosure.query.scan_task import Credentials
from cynosure.query.spark.kind import StatementLink
from cynosure.query.spark.native_files import TableFiles
from cynosure.query.spark.native_table import CREDENTIALS, NativeTable
from cynosure.spark.kinds import Ask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    # Columns of Iceberg may differ by nothing else.
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parser.escapedStringLiterals": "false",
    # Nothing runs while a leaf is built.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.iceberg.data-planning-mode": "local",
    "spark.sql.iceberg.delete-planning-mode": "local",
}


class NativeLink(StatementLink):
    """See `StatementLink`."""

    def __init__(self, spark: "SparkSession", task_id: str, ask: Ask) -> None:
        super().__init__(spark, task_id, ask)
        self._inner: SparkSession | None = None
        self._open: list[TableFiles] = []

    @property
    def inner(self) -> "SparkSession":
        """The session that tables are read in."""
        if self._inner is None:
            self._inner = self.spark.newSession()
            for name, value in _SETTINGS.items():
                self._inner.conf.set(name, value)
        return self._inner

    def open_files(self, view: str, table: NativeTable) -> TableFiles:
        """How the files of a relation are reached; until the job is over."""
        credentials = msgspec.convert(self._ask(CREDENTIALS, view), Credentials)
        files = TableFiles(self.spark, credentials, places=table.places, roots=table.file_roots)
        self._open.append(files)
        return files

    def close(self) -> None:
        """See `StatementLink`."""
        super().close()
        for files in self._open:
            files.close()
