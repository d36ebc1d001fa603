"""Restrictions for people who ask what somebody may see."""

from cynosure.auth.access.explain import Restriction
from cynosure.catalog.policies.attached import Attached
from cynosure.catalog.restrictions.in_force import InEffect
from cynosure.iceberg.restrictions.mapping import describe_mapped


def describe_restrictions(in_force: InEffect) -> tuple[Restriction, ...]:
    """What is in force for somebody, the widest first."""
    effects = [
        *((each, "nothing: this version does not understand the policy") for each in in_force.not_understood),
        *((each.attached, f"only rows where {describe_mapped(each.filter)}") for each in in_force.filters),
        *(
            (each.attached, ", ".join(f"{name} as {action}" for name, action in each.content.columns.items()))
            for each in in_force.masks
        ),
    ]
    effects.sort(key=lambda each: each[0].depth)
    return tuple(_describe(attached, effect) for attached, effect in effects)


def _describe(attached: Attached, effect: str) -> Restriction:
    return Restriction(str(attached.path), attached.policy.type, attached.on_kind, attached.on, effect)
