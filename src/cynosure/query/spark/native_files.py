"""How Iceberg's reader in Spark reaches files: a FileIO of one kind of storage, with one table's credentials.

A maintainer must not break: nothing of the machine's own (files elsewhere, an instance's role) is ever used
for a table. So a FileIO knows one scheme only, has credentials or is not made, and local files are looked at
before they are read.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from cynosure.common.errors import BadInput
from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Credentials
from cynosure.query.spark.java_classes import find_class
from cynosure.storage.location import Location, is_allowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3: Final = "org.apache.iceberg.aws.s3.S3FileIO"
_LOCAL: Final = "org.apache.iceberg.hadoop.HadoopFileIO"
_KEYS: Final = ("s3.access-key-id", "s3.secret-access-key")
_S3_PROPERTIES: Final = frozenset(
    {
        *_KEYS,
        "s3.session-token",
        "s3.session-token-expires-at-ms",
        "s3.endpoint",
        "s3.path-style-access",
        "s3.cross-region-access-enabled",
        "client.region",
    }
)
"""Others could name classes, or places that credentials are sent to."""


class TableFiles:
    """The files of one table, for one statement."""

    def __init__(
        self,
        session: "SparkSession",
        credentials: Credentials,
        *,
        places: tuple[str, ...],
        roots: tuple[str, ...],
    ) -> None:
        self._places = tuple(Location.parse(each) for each in places)
        schemes = {each.scheme for each in self._places}
        self.is_local = schemes == {"file"}
        if self.is_local:
            self._require_allowed(roots)
        elif schemes != {"s3"} or not all(credentials.properties.get(each) for each in _KEYS):
            raise NotReadable(
                "Spark's native scan reads tables on S3 and in local files only",
                fix="Set query.spark.scan=isolated.",
            )
        properties = find_class(session, "java.util.HashMap")()
        for name, value in credentials.properties.items():
            if name in _S3_PROPERTIES and not self.is_local:
                properties.put(name, value)
        configuration = session.sparkContext._jsc.hadoopConfiguration()
        self.java = find_class(session, "org.apache.iceberg.CatalogUtil").loadFileIO(
            _LOCAL if self.is_local else _S3, properties, configuration
        )
        """`FileIO` of Iceberg."""

    def check(self, paths: Iterable[str]) -> None:
        """`NotReadable` when a local file is not in one of the places. Elsewhere credentials see to it."""
        for path in paths if self.is_local else ():
            try:
                found = Location.parse(path)
                is_here = is_allowed(found, self._places) and is_allowed(_real(found), self._real_places)
            except BadInput:
                is_here = False
            if not is_here:
                raise NotReadable("A file of the table is outside of the table's places")

    def close(self) -> None:
        """Give back connections, where there are some."""
        if not self.is_local:
            self.java.close()

    def _require_allowed(self, roots: tuple[str, ...]) -> None:
        allowed = [Location.parse(each) for each in roots]
        self._real_places = tuple(map(_real, self._places))
        if not all(is_allowed(each, allowed) for each in self._places):
            raise NotReadable(
                "The table's files are local, and not in a directory that may be read",
                fix="Add it to query.gateway.file_locations.",
            )


def _real(location: Location) -> Location:
    """Where links lead."""
    return Location.parse(os.path.realpath("/" + "/".join(location.segments)))
