"""What can be done to a column instead of showing it.

The names and meanings are those of the Iceberg REST protocol. Where its text leaves a type open, the action
is not offered for that type: a server must not send an action that a reader need not know.

A maintainer must not break: `STRICTNESS` lists every action once, and of two masks on one column the one that
stands first wins.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from cynosure.iceberg.types import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    GeographyType,
    GeometryType,
    Type,
    is_primitive,
)

Action = Literal[
    "mask-to-fixed-value",
    "replace-with-null",
    "sha-256-query-local",
    "mask-alphanum",
    "truncate-to-year",
    "truncate-to-month",
    "sha-256-global",
    "show-first-4",
    "show-last-4",
]

OTHER_NAMES: Final[Mapping[str, Action]] = MappingProxyType({"mask-to-default": "mask-to-fixed-value"})
"""As drafts of the protocol called actions; policies may use them."""

STRICTNESS: Final[tuple[Action, ...]] = get_args(Action)
"""The strictest first.

A fixed value does not even tell what is null. A hash with a salt per query tells which values are equal, in
one query; the shape of a text tells its length; a year tells less than a month. A hash without a salt can be
looked up by whoever guesses the values, and the last two show a part of the value as it is.
"""

RANKS: Final[Mapping[Action, int]] = MappingProxyType({each: at for at, each in enumerate(STRICTNESS)})

_TIMES: Final = frozenset({DATE, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS})
_OF_TEXT: Final = frozenset(
    {"mask-alphanum", "show-first-4", "show-last-4", "sha-256-global", "sha-256-query-local"}
)
_SHOW_NOTHING: Final[tuple[Action, ...]] = ("mask-to-fixed-value", "replace-with-null")
_OF_TIMES: Final = frozenset({"truncate-to-year", "truncate-to-month"})


def fits(action: Action, type_: Type, *, is_required: bool) -> bool:
    """Whether an action can be applied to a column of this type."""
    if action in _OF_TEXT:
        return type_ == STRING
    if action in _OF_TIMES:
        return type_ in _TIMES
    if action == "replace-with-null":
        return not is_required
    return _has_fixed_value(type_)


def strictest(actions: tuple[Action, ...]) -> Action:
    """The one of several that wins."""
    return min(actions, key=RANKS.__getitem__)


def find_fitting(action: Action, type_: Type, *, is_required: bool) -> Action | None:
    """The action, or one that shows nothing where it does not fit; `None` when nothing fits."""
    for each in (action, *_SHOW_NOTHING):
        if fits(each, type_, is_required=is_required):
            return each
    return None


def _has_fixed_value(type_: Type) -> bool:
    return is_primitive(type_) and type_ != UNKNOWN and not isinstance(type_, GeometryType | GeographyType)
