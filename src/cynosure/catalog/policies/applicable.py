"""Which of the attached policies count for something.

Of a type that is inherited, the one nearest to the target replaces those above it. Of a type that is not,
those on the target itself count. Of a type that restricts, every one counts: a restriction that another could
replace would be lifted by attaching a weaker one below it.

Must not break: a restriction is never replaced.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cynosure.catalog.policies.attached import Attached
from cynosure.catalog.policies.types import PolicyType


class Applicable(Struct, frozen=True):
    """A policy that counts for a target."""

    attached: Attached
    is_inherited: bool
    """Whether it is attached to something above the target."""


def choose_applicable(
    attached: Sequence[Attached], types: Mapping[str, PolicyType], *, depth: int
) -> list[Applicable]:
    """Those that count for what is `depth` steps below the catalog, in the order they came in."""
    nearest = {each.policy.type: each.depth for each in attached}
    chosen: list[Applicable] = []
    for each in attached:
        kind = types.get(each.policy.type)
        is_inherited = each.depth < depth
        if kind is not None and kind.is_restriction:
            counts = kind.is_inheritable or not is_inherited
        elif kind is not None and kind.is_inheritable:
            counts = each.depth == nearest[each.policy.type]
        else:
            # Also of types that a newer version has stored: what is not known to be inherited is not.
            counts = not is_inherited
        if counts:
            chosen.append(Applicable(each, is_inherited))
    return chosen
