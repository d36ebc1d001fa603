"""Which version of a remote's table, view or namespace the mirror has: the index `remote` of the catalog.

    t2 a b t ─► Seen          under the key that it has in `names`
    u UUID   ─► t2 a b t      where the table or view with this uuid was last seen

Must not break: these entries are stored. A `Seen` gets new fields with defaults only; and whoever changes
what has a name in the mirror changes its entry here in the same commit.
"""

from typing import Final

import msgspec
from msgspec import Struct

from cynosure.catalog.changes import Changes
from cynosure.common.errors import Contended
from cynosure.federation.remote import Tag
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_key

INDEX: Final = "remote"
_UUID: Final = "u"


class Seen(Struct, frozen=True, array_like=True):
    """A version of something, as a remote had it."""

    tag: Tag = Tag()
    uuid: str = ""
    """Of the table or view, in lower case; namespaces have none."""
    seen_us: int = 0
    """When this version was first seen. When it was last found unchanged is known in a process only."""
    is_by_name: bool = False
    """Whether grants are for whatever has this name, so that the next thing of this name keeps the id."""

    def is_of(self, tag: Tag, uuid: str) -> bool:
        """Whether this is the version that has this tag."""
        return self.uuid == uuid and is_same(self.tag, tag)


class Anything(Struct, frozen=True):
    """In place of what is expected: that nothing is."""


ANYTHING: Final = Anything()
Expected = Seen | Anything | None
"""What the mirror had when the remote was asked. `None`: nothing of this name."""


class SeenMeanwhile(Contended):
    """While a remote was asked, somebody else saw another version. Whose is newer, only the remote knows."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "The remote catalog changes this faster than it can be read", fix="Try again.", table=name
        )


def is_same(one: Tag, other: Tag) -> bool:
    """Whether two tags are of the same version."""
    if one.etag is not None and other.etag is not None:
        return one.etag == other.etag
    return (one.metadata_location, one.version) == (other.metadata_location, other.version)


def uuid_key(uuid: str) -> bytes:
    """Key of the entry that says where a uuid was seen."""
    return encode_key(_UUID, uuid)


async def find_seen(view: View, key: bytes) -> Seen | None:
    """What was seen under a key of `names`; `None` when nothing was."""
    value = await view.find(INDEX, key)
    return None if value is None else _DECODER.decode(value)


async def find_by_uuid(view: View, uuid: str) -> bytes | None:
    """The key in `names` of the table or view that was seen with this uuid."""
    return await view.find(INDEX, uuid_key(uuid))


def require_expected(before: Seen | None, expected: Expected, name: str) -> None:
    """Refuse to put an answer of the remote's over what somebody saw after it was asked."""
    if not isinstance(expected, Anything) and before != expected:
        raise SeenMeanwhile(name)


def noting(key: bytes, seen: Seen, before: Seen | None = None) -> Changes:
    """Changes of the index that note a version in place of another."""
    entries: dict[bytes, bytes | None] = {}
    if before is not None and before.uuid and before.uuid != seen.uuid:
        entries[uuid_key(before.uuid)] = None
    entries[key] = _ENCODER.encode(seen)
    if seen.uuid:
        entries[uuid_key(seen.uuid)] = key
    return {INDEX: entries}


def erasing(key: bytes, before: Seen | None) -> Changes:
    """Changes of the index that forget what was seen under a key."""
    if before is None:
        return {}
    entries: dict[bytes, bytes | None] = {key: None}
    if before.uuid:
        entries[uuid_key(before.uuid)] = None
    return {INDEX: entries}


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Seen)
