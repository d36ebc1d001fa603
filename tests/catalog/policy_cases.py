"""Every operation on policies and exactly what it needs, as in `access_cases.py`."""

from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.list_applicable_policies import list_applicable_policies, place_of
from cynosure.catalog.operations.list_policies import list_policies
from cynosure.catalog.operations.load_policy import load_policy
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.revoke_privilege import revoke_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from tests.catalog.access_cases import ALL, Act, Case, a_role
from tests.catalog.policies.made import (
    CATALOG,
    COMPACTION,
    ENABLED,
    NAMESPACE,
    NS,
    TABLE,
    attach,
    create,
    policy,
)
from tests.catalog.tables import T
from tests.catalog.world import Lake

ON_POLICY = Grant("policy", P.POLICY_READ, NS, "p")


def on_policy(*privileges: P) -> list[Grant]:
    return [Grant("policy", each, NS, "p") for each in privileges]


async def a_policy(lake: Lake) -> None:
    await create(lake.catalog, "p")


async def an_attached_policy(lake: Lake) -> None:
    await create(lake.catalog, "p")
    for to in (CATALOG, NAMESPACE, TABLE):
        await attach(lake.catalog, "p", to)


async def a_role_and_a_policy(lake: Lake) -> None:
    await a_role(lake)
    await create(lake.catalog, "p")


def ask(*path: str) -> Act:
    def act(lake: Lake, who, _):
        place = place_of(lake.catalog, path[:1], path[1] if len(path) > 1 else None)
        return list_applicable_policies(lake.catalog, who, place, ALL)

    return act


POLICY_CASES = [
    Case(
        "create policy",
        lambda w, who, _: create_policy(w.catalog, who, CreatePolicy(policy("p"), COMPACTION, ENABLED)),
        on_namespace(NS, P.POLICY_CREATE),
    ),
    Case(
        "list policies",
        lambda w, who, _: list_policies(w.catalog, who, NS, ALL),
        on_namespace(NS, P.POLICY_LIST),
    ),
    Case(
        "list policies of a type",
        lambda w, who, _: list_policies(w.catalog, who, NS, ALL, policy_type=COMPACTION),
        on_namespace(NS, P.POLICY_LIST),
    ),
    Case(
        "load policy",
        lambda w, who, _: load_policy(w.catalog, who, policy("p")),
        on_policy(P.POLICY_READ),
        a_policy,
    ),
    Case(
        "update policy",
        lambda w, who, _: update_policy(w.catalog, who, policy("p"), PolicyUpdate('{"enable":false}')),
        on_policy(P.POLICY_WRITE),
        a_policy,
    ),
    Case(
        "drop policy",
        lambda w, who, _: drop_policy(w.catalog, who, policy("p")),
        on_policy(P.POLICY_DROP),
        a_policy,
    ),
    Case(
        "attach policy to the catalog",
        lambda w, who, _: attach_policy(w.catalog, who, policy("p"), CATALOG),
        [*on_policy(P.POLICY_ATTACH), *on_catalog(P.CATALOG_ATTACH_POLICY)],
        a_policy,
    ),
    Case(
        "attach policy to a namespace",
        lambda w, who, _: attach_policy(w.catalog, who, policy("p"), NAMESPACE),
        [*on_policy(P.POLICY_ATTACH), *on_namespace(NS, P.NAMESPACE_ATTACH_POLICY)],
        a_policy,
    ),
    Case(
        "attach policy to a table",
        lambda w, who, _: attach_policy(w.catalog, who, policy("p"), TABLE),
        [*on_policy(P.POLICY_ATTACH), *on_table(T, P.TABLE_ATTACH_POLICY)],
        a_policy,
    ),
    Case(
        "detach policy from the catalog",
        lambda w, who, _: detach_policy(w.catalog, who, policy("p"), CATALOG),
        [*on_policy(P.POLICY_DETACH), *on_catalog(P.CATALOG_DETACH_POLICY)],
        an_attached_policy,
    ),
    Case(
        "detach policy from a namespace",
        lambda w, who, _: detach_policy(w.catalog, who, policy("p"), NAMESPACE),
        [*on_policy(P.POLICY_DETACH), *on_namespace(NS, P.NAMESPACE_DETACH_POLICY)],
        an_attached_policy,
    ),
    Case(
        "detach policy from a table",
        lambda w, who, _: detach_policy(w.catalog, who, policy("p"), TABLE),
        [*on_policy(P.POLICY_DETACH), *on_table(T, P.TABLE_DETACH_POLICY)],
        an_attached_policy,
    ),
    Case("policies of the catalog", ask(), on_catalog(P.CATALOG_READ_PROPERTIES), an_attached_policy),
    Case(
        "policies of a namespace",
        ask("ns"),
        on_namespace(NS, P.NAMESPACE_READ_PROPERTIES),
        an_attached_policy,
    ),
    Case("policies of a table", ask("ns", "t"), on_table(T, P.TABLE_READ_PROPERTIES), an_attached_policy),
    Case(
        "grant on a policy",
        lambda w, who, _: grant_privilege(w.catalog, who, "reader", ON_POLICY),
        on_policy(P.CATALOG_MANAGE_ACCESS),
        a_role_and_a_policy,
    ),
    Case(
        "revoke on a policy",
        lambda w, who, _: revoke_privilege(w.catalog, who, "reader", ON_POLICY),
        on_catalog(P.CATALOG_MANAGE_ACCESS),
        a_role_and_a_policy,
    ),
]
