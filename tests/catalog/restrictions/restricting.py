"""Restrictions in the tests' catalog, and people under them."""

from typing import Any

import msgspec
from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.rbac.privileges import GRANTABLE
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.roles.securables import Grant
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T
from tests.catalog.world import NS, Lake

CATALOG = AttachTo("catalog")
NAMESPACE = AttachTo("namespace", NS)
TABLE = AttachTo("table-like", (*NS, "t"))
EVERYTHING = [Grant("catalog", each) for each in sorted(GRANTABLE["catalog"])]


async def restrict(lake: Lake, name: str, to: AttachTo | None = TABLE, /, **content: Any) -> Identifier:
    """A row filter or a column mask, whichever the content is, attached to something."""
    kind = "cynosure.row-filter" if "filter" in content else "cynosure.column-mask"
    said = {each.replace("_", "-"): value for each, value in {"enable": True, **content}.items()}
    path = Identifier(NS, name)
    await create_policy(lake.catalog, ROOT, CreatePolicy(path, kind, msgspec.json.encode(said).decode()))
    if to is not None:
        await attach_policy(lake.catalog, ROOT, path, to)
    return path


async def add_role(lake: Lake, role: str, *principals: str) -> None:
    """A principal role, and who has it."""
    await create_principal_role(lake.people.identities, ROOT, NewPrincipalRole(role))
    for each in principals:
        await assign_principal_role(lake.people.identities, ROOT, each, role)


def acting_as(caller: Caller, *roles: str) -> Caller:
    """The caller with a token that activates only these roles."""
    assert caller.identity is not None
    return replace(caller, identity=replace(caller.identity, scope=roles))


def restrictions_in(answer: TableAnswer) -> dict[str, Any] | None:
    """What an answer says about restrictions."""
    return msgspec.json.decode(answer.load_body()).get("read-restrictions")


async def load_restrictions(lake: Lake, caller: Caller, table: Identifier = T) -> dict[str, Any] | None:
    """What loading a table says about restrictions."""
    return restrictions_in(await load_table(lake.catalog, caller, table))
