"""Where the files of an append lie.

A maintainer must not break: a name is made of the append's key, the file's number and its content. So the
same append made again under the same key names the same files, and no file is ever replaced by another.
"""

import hashlib
import re
from typing import Any, Final

from cynosure.client.appending.partitions import Partition
from cynosure.client.appending.target import Target
from cynosure.iceberg.partitioning import partition_types
from cynosure.iceberg.pruning.transform import murmur3
from cynosure.iceberg.single_value import write_value
from cynosure.iceberg.types import DATE, Type

_DATA_PATHS: Final = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
_HASHED: Final = "write.object-storage.enabled"
_PARTITIONED: Final = "write.object-storage.partitioned-paths"
# What clients and stores all take literally. A directory's name is for people; readers take the partition
# from manifests.
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST: Final = 60


class Layout:
    """Names the files of one append."""

    def __init__(self, target: Target, key: str) -> None:
        given = [place for name in _DATA_PATHS if (place := target.properties.get(name))]
        self.base: Final = given[0].rstrip("/") if given else f"{target.location}/data"
        """What all files are below."""
        self._is_hashed = target.properties.get(_HASHED, "").lower() == "true"
        self._has_partitions = target.properties.get(_PARTITIONED, "true").lower() == "true"
        self._fields = target.spec.fields
        self._types = partition_types(target.spec, target.schema)
        # Whoever knows a key can ask for its answer, so files do not show it.
        self._append = hashlib.sha256(key.encode()).hexdigest()[:32]

    def name(self, number: int, partition: Partition, digest: str) -> str:
        """The location of a file."""
        file = f"{number:05}-{self._append}-{digest}.parquet"
        parts = self._name_partition(partition) if self._has_partitions or not self._is_hashed else []
        inside = "/".join([*parts, file])
        if not self._is_hashed:
            return f"{self.base}/{inside}"
        bits = f"{murmur3(inside.encode()) & 0xFFFFF:020b}"
        return f"{self.base}/{bits[:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}/{inside}"

    def _name_partition(self, partition: Partition) -> list[str]:
        return [
            f"{_safe(field.name)}={_safe(_show(field.transform, type_, value))}"
            for field, type_, value in zip(self._fields, self._types, partition, strict=True)
        ]


def _show(transform: str, type_: Type | None, value: Any) -> str:
    if value is None or type_ is None:
        return "null"
    if transform == "year":
        return str(1970 + value)
    if transform == "month":
        return f"{1970 + value // 12:04}-{value % 12 + 1:02}"
    if transform == "hour":
        return f"{write_value(DATE, value // 24)}-{value % 24:02}"
    return str(write_value(type_, value))


def _safe(text: str) -> str:
    cut = _UNSAFE.sub("_", text)[:_LONGEST]
    # A name of dots alone leads elsewhere.
    return cut if cut.strip(".") else "_"
