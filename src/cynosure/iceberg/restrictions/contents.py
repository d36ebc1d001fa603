"""The content of the two kinds of policies that restrict what is read.

    cynosure.row-filter    {"enable": true, "filter": "region = 'EU'", "roles": ["analyst"]}
    cynosure.column-mask   {"enable": true, "columns": {"ssn": "show-last-4"}, "except-roles": ["hr"]}

A maintainer must not break: a field that is not known is refused, at every depth. It could be one that was
meant to restrict more.
"""

from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.expressions.nodes import Expression
from cynosure.iceberg.expressions.parse import parse_expression
from cynosure.iceberg.restrictions.actions import OTHER_NAMES, Action
from cynosure.iceberg.restrictions.filter_sql import parse_sql
from cynosure.iceberg.restrictions.language import Mentioned, canonical, mentioned
from cynosure.iceberg.restrictions.mapping import read_nodes
from cynosure.iceberg.restrictions.masking import Masks
from cynosure.iceberg.restrictions.readers import Audience

MAX_CONTENT_BYTES: Final = 64 * 1024
MAX_COLUMNS: Final = 1_000
_MAX_ROLES: Final = 1_000
_ACTIONS: Final = frozenset(get_args(Action))
_COMMON: Final = frozenset({"enable", "roles", "except-roles"})


class RowFilter(Struct, frozen=True):
    """Rows are shown where the filter is true."""

    is_enabled: bool
    audience: Audience
    filter: Expression
    """Canonical (`language.py`)."""
    mentioned: Mentioned

    @property
    def roles(self) -> frozenset[str]:
        """All principal roles that it names."""
        return _roles_of(self.audience) | frozenset(self.mentioned.roles)


class ColumnMask(Struct, frozen=True):
    """Columns are shown in another way than they are."""

    is_enabled: bool
    audience: Audience
    columns: Masks

    @property
    def roles(self) -> frozenset[str]:
        """All principal roles that it names."""
        return _roles_of(self.audience)


def parse_row_filter(content: str) -> RowFilter:
    """A row filter from the content of its policy."""
    read = _decode(content, "filter")
    field, given = "content.filter", read.get("filter")
    if isinstance(given, str):
        expression = parse_sql(given, field=field)
    elif isinstance(given, dict | bool):
        expression = parse_expression(read_nodes(given, field=field), field=field)
    else:
        raise BadInput(
            "A row filter needs a filter", field=field, fix="Send a condition in SQL, or an expression."
        )
    expression = canonical(expression, field=field)
    return RowFilter(_read_enabled(read), _read_audience(read), expression, mentioned(expression))


def parse_column_mask(content: str) -> ColumnMask:
    """A column mask from the content of its policy."""
    read = _decode(content, "columns")
    columns = read.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise BadInput(
            "A column mask needs columns",
            field="content.columns",
            fix='Send an object of columns and actions: {"ssn": "show-last-4"}.',
        )
    if len(columns) > MAX_COLUMNS:
        raise TooLarge(
            "There are too many columns", field="content.columns", fix="Use several.", limit=MAX_COLUMNS
        )
    lowered: set[str] = set()
    masks: dict[str, Action] = {}
    for name, given in columns.items():
        action = OTHER_NAMES.get(given, given) if isinstance(given, str) else ""
        if action not in _ACTIONS:
            raise BadInput(
                "No such action",
                field=f"content.columns.{name[:200]}",
                fix=f"Use one of: {', '.join(sorted(_ACTIONS))}.",
            )
        if not name or name.lower() in lowered:
            raise BadInput(
                "A column is named twice or not at all",
                field=f"content.columns.{name[:200]}",
                fix="Name every column once; case does not tell columns apart.",
            )
        lowered.add(name.lower())
        masks[name] = action  # type: ignore[assignment]
    return ColumnMask(_read_enabled(read), _read_audience(read), masks)


def _decode(content: str, own: str) -> dict[str, Any]:
    if len(content.encode("utf-8", "surrogatepass")) > MAX_CONTENT_BYTES:
        raise TooLarge(
            "The content is too long", field="content", fix="Split the policy.", limit_bytes=MAX_CONTENT_BYTES
        )
    try:
        read = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadInput(
            "The content is not JSON", field="content", fix="Send a JSON object as text."
        ) from error
    if not isinstance(read, dict):
        raise BadInput("The content is not an object", field="content", fix="Send a JSON object as text.")
    for name in read:
        if name != own and name not in _COMMON:
            raise BadInput(
                "No such field",
                field=f"content.{name[:200]}",
                fix=f"The fields are: {', '.join(sorted({own, *_COMMON}))}.",
            )
    return read


def _read_enabled(read: dict[str, Any]) -> bool:
    enabled = read.get("enable")
    if not isinstance(enabled, bool):
        raise BadInput(
            "It is not said whether it is enabled", field="content.enable", fix="Send true or false."
        )
    return enabled


def _read_audience(read: dict[str, Any]) -> Audience:
    roles = _read_roles(read, "roles") if "roles" in read else None
    if roles == ():
        # Not "nobody": whoever empties the list most likely means everyone.
        raise BadInput(
            "A restriction for no role at all",
            field="content.roles",
            fix="Leave roles out to mean everyone, or send enable: false.",
        )
    return Audience(roles, _read_roles(read, "except-roles"))


def _read_roles(read: dict[str, Any], name: str) -> tuple[str, ...]:
    roles = read.get(name, [])
    is_list = isinstance(roles, list) and len(roles) <= _MAX_ROLES
    if not is_list or not all(isinstance(role, str) and role for role in roles):
        raise BadInput(
            "Roles are a list of names", field=f"content.{name}", fix="Send names of principal roles."
        )
    return tuple(dict.fromkeys(roles))


def _roles_of(audience: Audience) -> frozenset[str]:
    return frozenset((*(audience.roles or ()), *audience.except_roles))
