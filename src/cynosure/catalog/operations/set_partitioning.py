"""Choose how new files of a table are grouped, by names; the table gives fields and spec their ids."""

from collections.abc import Sequence

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.shaping import ShapeOf, change_shape
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.shaping import partitioning as shaping
from cynosure.iceberg.shaping.partitioning import NewPartitionField
from cynosure.iceberg.updates import TableUpdate


async def set_partitioning(
    catalog: OpenCatalog, caller: Caller, of: ShapeOf, fields: Sequence[NewPartitionField]
) -> TableAnswer:
    """Replace the default spec; files that are there stay as they are. A spec the table has is used again."""
    wanted = shaping.read_partition_fields(fields)

    def make_updates(base: TableMetadata) -> list[TableUpdate]:
        return shaping.set_partitioning(base, wanted)

    return await change_shape(catalog, caller, ops.SET_PARTITIONING, of, make_updates, field="fields")
