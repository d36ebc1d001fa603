"""How a catalog's `main` holds what policies are attached to.

    mappings     t TARGET POLICY → mapping      asked for by what counts for a table
                 p POLICY TARGET → mapping      asked for by what a policy is attached to

Ids are nine bytes (`encode_id_key`), so one prefix is exactly one target's or one policy's entries. Targets
are named by their stable id, so that renaming and restoring keep what is attached; 0 is the catalog itself.

Must not break: whatever writes one direction writes the other in the same change, and what is gone for good
takes its mappings along.
"""

from typing import Final, Literal

from msgspec import Raw, field

from cynosure.common.errors import CorruptObject
from cynosure.persistence.commit import View
from cynosure.persistence.index import decode_id_key, encode_id_key
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.spi import ObjId

MAPPINGS: Final = "mappings"
THE_CATALOG: Final = ObjId(0)
"""The target that is the catalog itself: no id is ever 0."""
TargetKind = Literal["catalog", "namespace", "table"]

_ID_BYTES: Final = 9
_PAIR_BYTES: Final = 1 + 2 * _ID_BYTES


class PolicyMapping(Stored, frozen=True):
    """That a policy is attached to something."""

    policy_id: ObjId
    target_id: ObjId
    target_kind: TargetKind
    attached_us: int
    attached_by: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    """As they came with the request: what they mean is for engines to know."""
    detail: Raw = Raw(b"\xc0")
    """Msgpack; what the policy's type found out about the target when it was attached."""


POLICY_MAPPING = struct_type("policy-mapping", PolicyMapping)


def target_key(target: ObjId, policy: ObjId) -> bytes:
    """That a policy is attached to a target, from the target's side."""
    return b"t" + encode_id_key(target) + encode_id_key(policy)


def policy_key(policy: ObjId, target: ObjId) -> bytes:
    """The same from the policy's side."""
    return b"p" + encode_id_key(policy) + encode_id_key(target)


def target_prefix(target: ObjId) -> bytes:
    """All that is attached to a target."""
    return b"t" + encode_id_key(target)


def policy_prefix(policy: ObjId) -> bytes:
    """All that a policy is attached to."""
    return b"p" + encode_id_key(policy)


def both_keys(policy: ObjId, target: ObjId) -> tuple[bytes, bytes]:
    """The two entries of one mapping."""
    return target_key(target, policy), policy_key(policy, target)


def first_id(key: bytes) -> ObjId:
    """The end that an entry is asked for by: what stands first in its key."""
    return _ids_of(key)[0]


def second_id(key: bytes) -> ObjId:
    """The other end of an entry: what stands last in its key."""
    return _ids_of(key)[1]


def _ids_of(key: bytes) -> tuple[ObjId, ObjId]:
    if len(key) != _PAIR_BYTES:
        raise CorruptObject("A key of mappings does not hold two ids", key_bytes=len(key))
    first, second = key[1 : 1 + _ID_BYTES], key[1 + _ID_BYTES :]
    return ObjId(decode_id_key(first)), ObjId(decode_id_key(second))


async def has_mappings(view: View) -> bool:
    """Whether anything is attached to anything in the catalog."""
    return bool(await view.scan(MAPPINGS, prefix=b"t", limit=1))


async def load_mappings(view: View, prefix: bytes) -> list[PolicyMapping]:
    """The mappings of one target or policy, in the order of the other end's id."""
    entries = await scan_all(view, MAPPINGS, prefix)
    return await view.load_many(POLICY_MAPPING, [ObjRef.unpack(value).id for _, value in entries])


async def remove_mappings_of_target(view: View, target: ObjId) -> dict[bytes, bytes | None]:
    """What to change in `mappings` so that nothing is attached to this target any more."""
    entries = await scan_all(view, MAPPINGS, target_prefix(target))
    return {key: None for entry, _ in entries for key in both_keys(second_id(entry), target)}


async def remove_mappings_of_policy(view: View, policy: ObjId) -> dict[bytes, bytes | None]:
    """What to change in `mappings` so that this policy is attached to nothing any more."""
    entries = await scan_all(view, MAPPINGS, policy_prefix(policy))
    return {key: None for entry, _ in entries for key in both_keys(policy, second_id(entry))}
