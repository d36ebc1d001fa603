"""What a reader has to do, as the REST protocol says it: `read-restrictions` of LoadTableResult.

A maintainer must not break: an empty object means no restriction to every reader, so a restriction is never
encoded as one.
"""

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from cynosure.iceberg.expressions.encode import expression_to_json
from cynosure.iceberg.expressions.nodes import TRUE, Expression
from cynosure.iceberg.restrictions.actions import Action


class ReadRestrictions(Struct, frozen=True, dict=True):
    """What one principal may see of a table at one version."""

    row_filter: Expression = TRUE
    """With field ids and exact constants (`binding.py`)."""
    projections: Mapping[int, Action] = {}
    """By field id."""

    def __bool__(self) -> bool:
        return self.row_filter != TRUE or bool(self.projections)

    @cached_property
    def json(self) -> bytes:
        """As `read-restrictions` in the protocol."""
        members: dict[str, Any] = {}
        if self.row_filter != TRUE:
            members["required-row-filter"] = expression_to_json(self.row_filter)
        if self.projections:
            members["required-column-projections"] = [
                {"field-id": id_, "action": action} for id_, action in sorted(self.projections.items())
            ]
        return msgspec.json.encode(members)


def mark_of(json: bytes) -> str:
    """A short name of restrictions, for ETags: different ones have different names."""
    return hashlib.sha256(json).hexdigest()[:32]
