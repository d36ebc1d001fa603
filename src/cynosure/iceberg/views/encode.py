"""View metadata to JSON, by joining what is encoded already."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from cynosure.iceberg.document import Document
from cynosure.iceberg.views.metadata import ViewMetadata

_encode: Final = msgspec.json.Encoder().encode


def encode_view(view: ViewMetadata) -> bytes:
    """The metadata file, or what a load answers."""
    known = (
        b'{"view-uuid":%b,"format-version":%d,"location":%b,"schemas":[%b],"current-version-id":%d,'
        b'"versions":[%b],"version-log":[%b],"properties":%b'
        % (
            _encode(view.view_uuid),
            view.format_version,
            _encode(view.location),
            _join(view.schemas),
            view.current_version_id,
            _join(view.versions),
            _join(view.version_log),
            _encode(view.properties),
        )
    )
    unknown = [b",%b:%b" % (_encode(name), json) for name, json in view.unknown.items()]
    return b"".join([known, *unknown, b"}"])


def _join(documents: Iterable[Document[Any]]) -> bytes:
    return b",".join([one.json for one in documents])
