"""Deletion vectors in a Puffin file: their bytes stay, and the footer names data files where they are now.

Most readers take a vector by its offset, from the manifest; some take it by the name in the footer. Both must
find the same.
"""

import os
from typing import IO, Any, Final

import msgspec

from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.repath import Rename

_MAGIC: Final = b"PFA1"
_END_BYTES: Final = 12
"""Length of the footer's text, flags, magic."""
_COMPRESSED: Final = 1
_REFERENCED: Final = "referenced-data-file"


def repath_vectors(file: IO[bytes], rename: Rename, *, path: str) -> int:
    """Give a file another footer; its size then. Nothing moves in front of the footer."""
    size_bytes = file.seek(0, os.SEEK_END)
    if size_bytes < len(_MAGIC) * 2 + _END_BYTES:
        raise _damaged(path)
    file.seek(size_bytes - _END_BYTES)
    end = file.read(_END_BYTES)
    length, flags = int.from_bytes(end[:4], "little"), end[4:8]
    start = size_bytes - _END_BYTES - length - len(_MAGIC)
    if end[8:] != _MAGIC or start < len(_MAGIC):
        raise _damaged(path)
    if flags[0] & _COMPRESSED:
        raise BadInput(
            "The footer of a file with deletion vectors is compressed, which this client cannot read",
            field="data-files",
            fix="Rewrite the table's deletes with an engine, or leave it behind.",
            path=path,
        )
    file.seek(start)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise _damaged(path)
    try:
        footer: dict[str, Any] = msgspec.json.decode(file.read(length), type=dict)
        for blob in footer["blobs"]:
            named = blob.get("properties", {})
            if _REFERENCED in named:
                named[_REFERENCED] = rename(named[_REFERENCED])
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path) from error
    text = msgspec.json.encode(footer)
    file.seek(start)
    file.truncate()
    file.write(_MAGIC + text + len(text).to_bytes(4, "little") + flags + _MAGIC)
    return file.tell()


def _damaged(path: str) -> BadInput:
    return BadInput(
        "A file with deletion vectors is damaged",
        field="data-files",
        fix="Restore the file, or roll the table back to a snapshot without it.",
        path=path,
    )
