"""The two types of policies that restrict what principals read of tables.

Must not break: what is attached to a table is checked against it, and the fields that its columns are then
are kept with the mapping. A column that is later made anew under the same name is another field, and is not
taken for it.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Final

import msgspec
from msgspec import Raw, Struct

from cynosure.catalog.errors import InvalidPolicy, NotImported
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.policies.types import Attachable, Surroundings
from cynosure.catalog.resolve import find_table_ref
from cynosure.catalog.restrictions.readers import find_missing_roles
from cynosure.catalog.targets import TableTarget
from cynosure.common.errors import BadInput
from cynosure.iceberg.restrictions.binding import bind_filter, check_mapping, find_ids
from cynosure.iceberg.restrictions.contents import (
    ColumnMask,
    RowFilter,
    parse_column_mask,
    parse_row_filter,
)
from cynosure.iceberg.restrictions.language import find_all_mapped, leaves
from cynosure.iceberg.restrictions.mapping import Mapped
from cynosure.iceberg.restrictions.masking import check_masks
from cynosure.iceberg.restrictions.readers import Reader
from cynosure.iceberg.restrictions.resolving import resolve
from cynosure.iceberg.schema import Schema
from cynosure.persistence.commit import View

Ids = Mapping[str, tuple[int, ...]]
"""The fields that columns were when a policy was attached to a table, by the name that the policy uses."""


class _Detail(Struct, frozen=True):
    """What is kept with a mapping."""

    ids: dict[str, tuple[int, ...]] | None = None
    mapping: int = 0
    """Stable id of the mapping table that a filter asks: another one of its name is not taken for it."""


class RestrictionType(Struct, frozen=True):
    """One of the two types."""

    name: str
    read: Callable[[str], RowFilter | ColumnMask]

    @property
    def is_inheritable(self) -> bool:
        """See `PolicyType`."""
        return True

    @property
    def is_restriction(self) -> bool:
        """See `PolicyType`."""
        return True

    def parse(self, content: str) -> RowFilter | ColumnMask:
        """See `PolicyType`."""
        try:
            return self.read(content)
        except BadInput as error:
            raise _invalid(error) from error

    async def check_target(
        self, parsed: object, surroundings: Surroundings, view: View, target: Attachable
    ) -> object:
        """See `PolicyType`. The roles must exist; on a table, everything must fit its columns.

        A namespace or catalog has no columns. Where a filter does not fit a table below, that table cannot be
        read by those it restricts.
        """
        assert isinstance(parsed, RowFilter | ColumnMask)  # noqa: S101 - what `parse` gave
        missing = await find_missing_roles(surroundings.persistence, surroundings.realm, parsed.roles)
        if missing:
            raise InvalidPolicy(
                "The policy names a principal role that does not exist",
                field="content",
                fix="Create the role first, or correct its name: data would stay open.",
                roles=", ".join(sorted(missing)),
            )
        schema: Schema | None = None
        ids: Ids | None = None
        try:
            if isinstance(target, TableTarget):
                ref = await target.locate(view)
                if ref.type == POINTER.name:
                    raise NotImported(target.name)
                schema = (await load_table_at(view, ref.id, surroundings.tables)).metadata.current_schema()
                ids = find_current_ids(parsed, schema)
            mapping_id = await _check_mapping_table(parsed, surroundings, view, schema)
        except BadInput as error:
            raise _invalid(error) from error
        return None if ids is None and not mapping_id else {"ids": ids, "mapping": mapping_id}


async def _check_mapping_table(
    parsed: RowFilter | ColumnMask, surroundings: Surroundings, view: View, schema: Schema | None
) -> int:
    """The id of the mapping table that a filter asks; 0 for none. `BadInput` when it is not as it must be."""
    mapped = find_asked(parsed)
    if mapped is None:
        return 0
    field = "content.filter"
    table = await find_mapping_table(view, mapped, surroundings.tables)
    if table is None:
        raise BadInput(
            "The mapping table is not there, or not imported yet",
            field=field,
            fix="Create it first, in the same catalog, and name it with its whole namespace.",
            table=mapped.table_name,
        )
    check_mapping(mapped, schema, table.metadata.current_schema(), field=field)
    return int(table.state.id)


def find_asked(parsed: object) -> Mapped | None:
    """What the content of a policy asks of a mapping table, if it does."""
    return next(iter(find_all_mapped(parsed.filter)), None) if isinstance(parsed, RowFilter) else None


async def find_mapping_table(view: View, mapped: Mapped, tables: RecentTables) -> ManagedTable | None:
    """The mapping table of this name; `None` when there is none, or none whose columns are known."""
    *namespace, name = mapped.table
    ref = await find_table_ref(view, Identifier(tuple(namespace), name))
    if ref is None or ref.type == POINTER.name:
        return None
    return await load_table_at(view, ref.id, tables)


def find_current_ids(parsed: RowFilter | ColumnMask, schema: Schema) -> dict[str, tuple[int, ...]]:
    """The fields that columns are; `BadInput` unless the policy fits the schema."""
    if isinstance(parsed, ColumnMask):
        return check_masks(parsed.columns, schema, field="content.columns")
    # Part by part: who reads decides which are used, and for somebody each of them is.
    for leaf in leaves(parsed.filter):
        bind_filter(resolve(leaf, Reader("")), schema, field="content.filter")
    ids = find_ids(parsed.mentioned.columns, schema, field="content.filter")
    return {name: (id_,) for name, id_ in ids.items()}


def read_ids(detail: Raw) -> Ids | None:
    """What was kept with a mapping; `None` for one that is not on a table."""
    read = msgspec.msgpack.decode(detail, type=_Detail | None)
    return None if read is None else read.ids


def read_mapping_id(detail: Raw) -> int:
    """The id of the mapping table that was there when a filter was attached; 0 when it asks none."""
    read = msgspec.msgpack.decode(detail, type=_Detail | None)
    return 0 if read is None else read.mapping


def _invalid(error: BadInput) -> InvalidPolicy:
    details = {name: value for name, value in error.details.items() if name != "field"}
    return InvalidPolicy(error.message, field=error.field, fix=error.fix, **details)


ROW_FILTER: Final = RestrictionType("cynosure.row-filter", parse_row_filter)
COLUMN_MASK: Final = RestrictionType("cynosure.column-mask", parse_column_mask)
RESTRICTION_TYPES: Final = (ROW_FILTER, COLUMN_MASK)
_PARSER: Final = "sqlglot"
_BY_NAME: Final = {each.name: each for each in RESTRICTION_TYPES}
OURS: Final = "cynosure."
"""How the names of types begin that restrict, those of newer versions included."""


async def ensure_parser() -> None:
    """Have the parser of filters imported, which takes long enough for others to notice."""
    if _PARSER not in sys.modules:
        await asyncio.to_thread(import_module, _PARSER)


@lru_cache(maxsize=256)
def read_content(policy_type: str, content: str | None) -> RowFilter | ColumnMask | None:
    """What a stored policy says; `None` when this version does not understand it."""
    known = _BY_NAME.get(policy_type)
    try:
        return None if known is None or content is None else known.read(content)
    except BadInput:
        return None
