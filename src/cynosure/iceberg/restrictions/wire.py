"""What a reader has to do, as the REST protocol says it: `read-restrictions` of LoadTableResult.

Two things more are said to the gateway, which is known by its capabilities: which policies it is that
restrict (`cynosure-policies`), and mapping tables. These are leaves of the filter, and what they mean stands
beside it:

    {"type": "in-mapping", "term": {"type": "reference", "id": 5}, "mapping": 0}
    "cynosure-mappings": [{"namespace": ["gov"], "name": "regions", "column": "region", "filter": …,
                           "policy": "gov.own-region"}]

A maintainer must not break: an empty object means no restriction to every reader, so a restriction is never
encoded as one. Nobody is told of a mapping table who did not say that they know what it means: a reader that
skips the node shows all rows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from cynosure.iceberg.expressions.encode import expression_to_json
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import TRUE, And, Expression, IdReference, Or
from cynosure.iceberg.restrictions.actions import Action
from cynosure.iceberg.restrictions.language import find_all_mapped, leaves
from cynosure.iceberg.restrictions.mapping import NODE, find_mapped


class ReadRestrictions(Struct, frozen=True, dict=True):
    """What one principal may see of a table at one version."""

    row_filter: Expression = TRUE
    """With field ids and exact constants (`binding.py`)."""
    projections: Mapping[int, Action] = {}
    """By field id."""
    policies: tuple[str, ...] = ()
    """What says so."""
    mapped_by: tuple[str, ...] = ()
    """The policy of each mapping table in the filter, in their order."""

    def __bool__(self) -> bool:
        return self.row_filter != TRUE or bool(self.projections)

    @property
    def has_mappings(self) -> bool:
        """Whether the filter asks another table, so that only who knows how to can apply it."""
        return bool(self.mapped_by)

    @cached_property
    def json(self) -> bytes:
        """As `read-restrictions` in the protocol."""
        return msgspec.json.encode(self._members())

    @cached_property
    def json_with_policies(self) -> bytes:
        """The same, with names of the policies."""
        return msgspec.json.encode({**self._members(), "cynosure-policies": self.policies})

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        if self.row_filter != TRUE:
            members["required-row-filter"] = _write_filter(self.row_filter)
        if self.projections:
            members["required-column-projections"] = [
                {"field-id": id_, "action": action} for id_, action in sorted(self.projections.items())
            ]
        if self.mapped_by:
            mapped = find_all_mapped(self.row_filter)
            members["cynosure-mappings"] = [
                {
                    "namespace": each.table[:-1],
                    "name": each.table[-1],
                    "column": each.value,
                    "filter": expression_to_json(each.filter),
                    "policy": policy,
                }
                for each, policy in zip(mapped, self.mapped_by, strict=True)
            ]
        return members


def _write_filter(expression: Expression) -> Any:
    asking = [node for node in leaves(expression) if find_mapped(node) is not None]
    numbers = {id(node): at for at, node in enumerate(asking)}

    def expand(node: Expression) -> tuple[Sequence[Expression], Join[Any]]:
        match node:
            case And(left, right) | Or(left, right):
                op = "and" if isinstance(node, And) else "or"
                return (left, right), lambda parts: {"type": op, "left": parts[0], "right": parts[1]}
        mapped = find_mapped(node)
        if mapped is None:
            return (), lambda _: expression_to_json(node)
        assert isinstance(mapped.column, IdReference)  # noqa: S101 - it is bound
        term = {"type": "reference", "id": mapped.column.id}
        return (), lambda _: {"type": NODE, "term": term, "mapping": numbers[id(node)]}

    return fold(expression, expand)


def mark_of(json: bytes) -> str:
    """A short name of restrictions, for ETags: different ones have different names."""
    return hashlib.sha256(json).hexdigest()[:32]
