"""The policies that are attached to anything in a catalog, dropped things included."""

from msgspec import Struct

from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.names import Identifier
from cynosure.catalog.policies.attached import load_policy_by_id
from cynosure.catalog.policies.mappings import MAPPINGS, policy_prefix
from cynosure.catalog.restrictions.in_force import is_restricting
from cynosure.catalog.restrictions.types import OURS, ensure_parser
from cynosure.persistence.commit import View
from cynosure.persistence.index import decode_id_key
from cynosure.persistence.spi import ObjId


class Somewhere(Struct, frozen=True):
    """A policy that is attached to something."""

    policy: PolicyEntity
    path: Identifier


async def load_restrictions_anywhere(view: View) -> list[Somewhere]:
    """All that restrict somebody, wherever they are attached."""
    found: list[Somewhere] = []
    start = b"p"
    # From policy to policy: how many things each is attached to does not matter.
    while entries := await view.scan(MAPPINGS, prefix=b"p", start=start, limit=1):
        policy_id = _policy_of(entries[0][0])
        path, policy = await load_policy_by_id(view, policy_id)
        if policy.type.startswith(OURS):
            await ensure_parser()
        if is_restricting(policy):
            found.append(Somewhere(policy, path))
        start = policy_prefix(ObjId(policy_id + 1))
    return found


def _policy_of(key: bytes) -> ObjId:
    prefix_bytes = len(policy_prefix(ObjId(0)))
    return ObjId(decode_id_key(key[1:prefix_bytes]))
