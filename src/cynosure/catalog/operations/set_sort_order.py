"""Choose how writers sort rows of a table, by names; the table gives the order its id."""

from collections.abc import Sequence

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.shaping import ShapeOf, change_shape
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.shaping import sort_order as shaping
from cynosure.iceberg.shaping.sort_order import NewSortField
from cynosure.iceberg.updates import TableUpdate


async def set_sort_order(
    catalog: OpenCatalog, caller: Caller, of: ShapeOf, fields: Sequence[NewSortField]
) -> TableAnswer:
    """Replace the default order; files that are there stay as they are. One the table has is used again."""
    wanted = shaping.read_sort_fields(fields)

    def make_updates(base: TableMetadata) -> list[TableUpdate]:
        return shaping.set_sort_order(base, wanted)

    return await change_shape(catalog, caller, ops.SET_SORT_ORDER, of, make_updates, field="fields")
