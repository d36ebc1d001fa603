"""The stored form of a view, and what clients are told of it.

Views are small and change seldom, so the whole metadata is one JSON document inside one object.

Must not break: a stored struct gets new fields with defaults only.
"""

import msgspec

from cynosure.persistence.objects import ObjectType, Stored, struct_type
from cynosure.persistence.spi import ObjId

_encode = msgspec.json.Encoder().encode


class ViewState(Stored, frozen=True):
    """A view at one version."""

    id: ObjId
    """Stable: the same for every version of the view, and kept by rename and undrop."""
    created_us: int
    updated_us: int
    metadata_location: str
    """The exported file, or the one the view was registered with."""
    file_number: int
    """Counts the view's metadata files; part of their names."""
    location: str
    json: bytes
    """The view metadata."""
    claims: tuple[str, ...] = ()
    """As in `TableState`."""

    def load_body(self) -> bytes:
        """The body of LoadViewResult."""
        return b'{"metadata-location":%b,"metadata":%b,"config":{}}' % (
            _encode(self.metadata_location),
            self.json,
        )


VIEW: ObjectType[ViewState] = struct_type("view", ViewState, version=2)
