"""Places that a federated catalog has given to another catalog for good, with the tables in them.

In the giver's own state, index `ceded`: place to the id of the catalog that has it now. Its claim in
`locations` is that of nobody (`CEDED`), so that nothing of the giver is ever at, above or below it again. In
the realm's list, index `ceded`: place to giver and taker, the one exception from the rule that no location of
one catalog is inside one of another (`listed.py`).

Must not break: these entries are stored. And the giver's claim stays for as long as the giver does: the files
are the taker's, whatever the remote makes there later.
"""

from typing import Final

import msgspec
from msgspec import Struct

from cynosure.catalog.changes import Changes
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key, encode_key
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.storage.location import Location

INDEX: Final = "ceded"
CEDED: Final = ObjId(1)
"""Holds what was given away. No table has it: ids are made of the time."""
HOLDER: Final = encode_id_key(CEDED)
"""As the index `locations` has it."""


class Cession(Struct, frozen=True, array_like=True):
    """Who gave a place to whom. Stored: fields only get added, with defaults."""

    giver: CatalogId
    taker: CatalogId


async def is_ceded(view: View, key: bytes) -> bool:
    """Whether a giver gave this very place away; the key is that of `locations`."""
    return await view.find(INDEX, key) is not None


def ceding(places: list[Location], taker: CatalogId) -> Changes:
    """Changes of the giver's own state. Claims come with the tables (`federation.migration.give`)."""
    return {INDEX: {encode_key(*each.key()): taker.encode() for each in places}}


async def find_cession(view: View, key: bytes) -> Cession | None:
    """What the realm's list says of this very place."""
    value = await view.find(INDEX, key)
    return None if value is None else _DECODER.decode(value)


def listing_cession(places: list[Location], cession: Cession) -> Changes:
    """Changes of the realm's list."""
    value = _ENCODER.encode(cession)
    return {INDEX: {encode_key(*each.key()): value for each in places}}


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Cession)
