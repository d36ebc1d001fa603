"""Add columns to a table, by names; the table gives them their ids."""

from collections.abc import Sequence

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.shaping import ShapeOf, change_shape
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.shaping import columns as shaping
from cynosure.iceberg.shaping.columns import NewColumn
from cynosure.iceberg.updates import TableUpdate


async def add_columns(
    catalog: OpenCatalog, caller: Caller, of: ShapeOf, columns: Sequence[NewColumn]
) -> TableAnswer:
    """All of them, or none. A column that the table has by now, even an equal one, is refused."""
    wanted = shaping.read_columns(columns)

    def make_updates(base: TableMetadata) -> list[TableUpdate]:
        return shaping.add_columns(base, wanted)

    return await change_shape(catalog, caller, ops.ADD_COLUMNS, of, make_updates, field="columns")
