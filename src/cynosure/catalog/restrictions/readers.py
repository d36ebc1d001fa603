"""Who asks, as restrictions see it: with all roles that count, whichever of them the request acts with."""

from typing import NamedTuple

from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.auth.principals import find_role_in, read_principals
from cynosure.auth.standing import Standings
from cynosure.catalog.guards import Guards, join_guards
from cynosure.iceberg.restrictions.readers import Reader
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import RealmId


class Asking(NamedTuple):
    """Somebody who asks for a table."""

    reader: Reader
    is_trusted_engine: bool
    """Whether a trusted service asks for the principal, and will apply its restrictions."""
    guards: Guards
    """Heads that this rests on."""
    capabilities: frozenset[str] = frozenset()
    """What the trusted engine knows beyond the protocol."""


async def load_asking(
    persistence: Persistence, standings: Standings, caller: Caller, named: frozenset[str]
) -> Asking:
    """The caller, seen by restrictions that name these roles."""
    identity = caller.identity
    if identity is None:
        # Nobody that is known: every restriction counts, for whichever role it is.
        return Asking(Reader(caller.principal, missing=named), False, {})
    acting = await standings.load(caller.realm, identity)
    all_of_it = (
        acting
        if identity.scope is None
        else await standings.load(caller.realm, replace(identity, scope=None))
    )
    reader = Reader(
        # By its name now; the one in the caller is for logs.
        name=acting.standing.principal.name,
        assigned=frozenset(role.name for role in all_of_it.standing.roles),
        active=frozenset(role.name for role in acting.standing.roles),
    )
    unknown = named - reader.assigned
    if unknown:
        reader = replace(reader, missing=await find_missing_roles(persistence, caller.realm, unknown))
    guards = join_guards({acting.key: acting.head}, {all_of_it.key: all_of_it.head})
    is_engine = acting.standing.actor is not None
    return Asking(reader, is_engine, guards, caller.capabilities if is_engine else frozenset())


async def find_missing_roles(
    persistence: Persistence, realm: RealmId, names: frozenset[str]
) -> frozenset[str]:
    """Those of the principal roles that do not exist."""
    state = (await read_principals(persistence, realm)).state
    return frozenset([name for name in names if await find_role_in(state, name) is None])
