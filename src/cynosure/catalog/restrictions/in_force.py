"""Which of the policies that are attached on the way to something restrict somebody.

Must not break: a policy that cannot be understood restricts everyone.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.policies.attached import Attached
from cynosure.catalog.restrictions.readers import Asking
from cynosure.catalog.restrictions.types import OURS, read_content
from cynosure.iceberg.expressions.nodes import TRUE, Expression
from cynosure.iceberg.restrictions.contents import ColumnMask, RowFilter
from cynosure.iceberg.restrictions.language import find_all_mapped
from cynosure.iceberg.restrictions.mapping import Mapped
from cynosure.iceberg.restrictions.resolving import resolve


class Placed(Protocol):
    """A policy by name, attached or not."""

    @property
    def policy(self) -> PolicyEntity:
        """The policy."""
        ...

    @property
    def path(self) -> Identifier:
        """What it is called."""
        ...


class FilterInEffect(NamedTuple):
    """A row filter that hides rows from somebody."""

    attached: Attached
    content: RowFilter
    filter: Expression
    """Resolved for them, not bound."""

    @property
    def mapped(self) -> Mapped | None:
        """What it asks of a mapping table, if it does."""
        return next(iter(find_all_mapped(self.filter)), None)


class MaskInEffect(NamedTuple):
    """A mask that somebody sees columns through."""

    attached: Attached
    content: ColumnMask


class InEffect(NamedTuple):
    """What restricts somebody on the way to something."""

    asking: Asking
    filters: tuple[FilterInEffect, ...]
    masks: tuple[MaskInEffect, ...]
    not_understood: tuple[Attached, ...]
    mapping_tables: Mapping[tuple[str, ...], ManagedTable | None] = MappingProxyType({})
    """As they are now, by namespace and name; None for one that is not there."""

    @property
    def has_mappings(self) -> bool:
        """Whether a filter asks a mapping table."""
        return any(each.mapped is not None for each in self.filters)

    @property
    def is_certain(self) -> bool:
        """Whether it restricts whatever the columns of a table are."""
        return bool(self.filters or self.not_understood)

    @property
    def policies(self) -> tuple[Attached, ...]:
        """All of them."""
        return (
            *self.not_understood,
            *(each.attached for each in self.filters),
            *(each.attached for each in self.masks),
        )


def restricting(attached: Iterable[Attached]) -> list[Attached]:
    """Those that are of a type that restricts, and not switched off."""
    return [each for each in attached if is_restricting(each.policy)]


def is_restricting(policy: PolicyEntity) -> bool:
    """Whether a policy restricts anyone at all."""
    if not policy.type.startswith(OURS):
        return False
    content = read_content(policy.type, policy.content)
    return content is None or content.is_enabled


def roles_of(attached: Iterable[Placed]) -> frozenset[str]:
    """The roles that policies name."""
    contents = [read_content(each.policy.type, each.policy.content) for each in attached]
    return frozenset(role for content in contents if content is not None for role in content.roles)


def find_in_force(attached: Iterable[Attached], asking: Asking) -> InEffect | None:
    """What of these restricts somebody; `None` for nothing."""
    filters: list[FilterInEffect] = []
    masks: list[MaskInEffect] = []
    unclear: list[Attached] = []
    for each in attached:
        content = read_content(each.policy.type, each.policy.content)
        if content is None:
            unclear.append(each)
        elif not content.audience.includes(asking.reader):
            continue
        elif isinstance(content, ColumnMask):
            masks.append(MaskInEffect(each, content))
        elif (resolved := resolve(content.filter, asking.reader)) != TRUE:
            filters.append(FilterInEffect(each, content, resolved))
    if not filters and not masks and not unclear:
        return None
    return InEffect(asking, tuple(filters), tuple(masks), tuple(unclear))


def is_restricted_by(policy: PolicyEntity, asking: Asking) -> bool:
    """Whether a policy that is in force somewhere restricts somebody there."""
    content = read_content(policy.type, policy.content)
    if content is None:
        return True
    if not content.audience.includes(asking.reader):
        return False
    return isinstance(content, ColumnMask) or resolve(content.filter, asking.reader) != TRUE
