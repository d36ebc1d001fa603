"""Which attached policies count, against a rule that is told the other way round (I47)."""

from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.policies.applicable import choose_applicable
from cynosure.catalog.policies.attached import Attached
from cynosure.catalog.policies.mappings import PolicyMapping
from cynosure.catalog.policies.system_types import SystemType
from cynosure.persistence.spi import ObjId


class Kind(Struct, frozen=True):
    """A type of policies that is of interest for its rules only."""

    name: str
    is_inheritable: bool
    is_restriction: bool
    parse = SystemType.parse
    check_target = SystemType.check_target


KINDS = MappingProxyType(
    {
        each.name: each
        for each in (
            Kind("inherited", is_inheritable=True, is_restriction=False),
            Kind("own", is_inheritable=False, is_restriction=False),
            Kind("restricting", is_inheritable=True, is_restriction=True),
        )
    }
)
DEPTH = 3


def attached(number: int, policy_type: str, depth: int) -> Attached:
    policy_id, target_id = ObjId(1000 + number), ObjId(depth)
    return Attached(
        policy=PolicyEntity(id=policy_id, type=policy_type, created_us=0, updated_us=0),
        namespace=("ns",),
        name=f"p{number}",
        target_id=target_id,
        depth=depth,
        on_kind="namespace",
        on="x",
        mapping=PolicyMapping(
            policy_id=policy_id, target_id=target_id, target_kind="namespace", attached_us=0
        ),
    )


paths = st.lists(st.tuples(st.sampled_from([*KINDS, "unheard-of"]), st.integers(0, DEPTH)), max_size=12).map(
    lambda pairs: [attached(n, *pair) for n, pair in enumerate(sorted(pairs, key=lambda pair: pair[1]))]
)


@given(paths)
def test_what_counts_is_what_the_rules_say(found: list[Attached]) -> None:
    chosen = {each.attached.name: each for each in choose_applicable(found, KINDS, depth=DEPTH)}

    for each in found:
        counts = each.name in chosen
        is_replaced = any(
            other.policy.type == each.policy.type and other.depth > each.depth for other in found
        )
        match each.policy.type:
            case "restricting":
                assert counts
            case "inherited":
                assert counts != is_replaced
            case _:
                assert counts == (each.depth == DEPTH)
        if counts:
            assert chosen[each.name].is_inherited == (each.depth < DEPTH)


@given(paths)
def test_the_order_stays(found: list[Attached]) -> None:
    chosen = [each.attached for each in choose_applicable(found, KINDS, depth=DEPTH)]

    assert chosen == [each for each in found if each in chosen]
