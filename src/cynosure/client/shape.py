"""Changes of a table's columns, partitioning and sort order by names; the server chooses all ids.

Must not break: nothing is read before. What the table has by now is the server's to look at, so clients that
change one table at once need no retry.
"""

from collections.abc import Sequence
from typing import Any, Final

from cynosure.client.api import ApiClient, segment
from cynosure.client.catalog import Namespace
from cynosure.client.changes import Keyed
from cynosure.iceberg.shaping.columns import NewColumn
from cynosure.iceberg.shaping.partitioning import NewPartitionField
from cynosure.iceberg.shaping.sort_order import NewSortField

_BASE: Final = "/api/catalog/cynosure/v1"
_BETWEEN: Final = "\x1f"


class ShapeApi(Keyed):
    """Shapes of the tables of one catalog. Each call answers with the table's metadata and where it is."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self._base = f"{_BASE}/{segment(catalog)}/namespaces"

    async def add_columns(
        self,
        namespace: Namespace,
        name: str,
        columns: Sequence[NewColumn],
        *,
        table_uuid: str | None = None,
    ) -> dict[str, Any]:
        """Add columns, all of them or none."""
        return await self._send(namespace, name, "add-columns", {"columns": columns}, table_uuid)

    async def set_partitioning(
        self,
        namespace: Namespace,
        name: str,
        fields: Sequence[NewPartitionField],
        *,
        table_uuid: str | None = None,
    ) -> dict[str, Any]:
        """Choose how new files are grouped; without fields, not at all."""
        return await self._send(namespace, name, "set-partitioning", {"fields": fields}, table_uuid)

    async def set_sort_order(
        self,
        namespace: Namespace,
        name: str,
        fields: Sequence[NewSortField],
        *,
        table_uuid: str | None = None,
    ) -> dict[str, Any]:
        """Choose how writers sort rows; without fields, not at all."""
        return await self._send(namespace, name, "set-sort-order", {"fields": fields}, table_uuid)

    async def _send(
        self, namespace: Namespace, name: str, change: str, body: dict[str, Any], table_uuid: str | None
    ) -> dict[str, Any]:
        path = f"{self._base}/{segment(_BETWEEN.join(namespace))}/tables/{segment(name)}/{change}"
        if table_uuid is not None:
            body["table-uuid"] = table_uuid
        changed: dict[str, Any] = (await self._change("POST", path, body=body)).decode(dict)
        return changed
