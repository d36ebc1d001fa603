"""Changes of columns, partitioning or sort order of a table, worked out from names on the current state.

Must not break: the updates are made in `prepare`, for the very state that the commit replaces, and made again
for another one. So two clients that change a table at once never conflict over ids.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.files.export import Export
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.table_changes import (
    Changed,
    TableChange,
    commit_change,
    load_base,
    prepare_update,
)
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import AssertTableUuid, TableRequirement, check_requirements
from cynosure.iceberg.updates import TableUpdate
from cynosure.persistence.commit import Prepared, View


class ShapeOf(Struct, frozen=True):
    """The table whose shape is to change."""

    table: Identifier
    uuid: str | None = None
    """If given, it must be this very table, not another that has its name by now."""


async def change_shape(
    catalog: OpenCatalog,
    caller: Caller,
    operation: Operation,
    of: ShapeOf,
    make_updates: Callable[[TableMetadata], Sequence[TableUpdate]],
    *,
    field: str,
) -> TableAnswer:
    """Commit the updates that `make_updates` makes for the current state.

    `field` is the part of the request that errors name which are found only when the updates are applied.
    """
    requirements: list[TableRequirement] = [] if of.uuid is None else [AssertTableUuid(of.uuid)]

    async def prepare(export: Export, view: View) -> Prepared[Changed]:
        base = await load_base(catalog, view, of.table, await require_table_ref(view, of.table))
        check_requirements(base.metadata, requirements)
        change = TableChange(of.table, requirements, make_updates(base.metadata))
        try:
            return await prepare_update(catalog, caller, export, view, change)
        except InvalidUpdate as error:
            # It names an update, and the client has sent none.
            details = {name: value for name, value in error.details.items() if name != "field"}
            raise InvalidUpdate(error.message, field=field, fix=error.fix, **details) from error

    return await commit_change(catalog, caller, operation, catalog.table(of.table), of.table, prepare)
