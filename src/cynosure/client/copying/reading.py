"""The files of a table that is copied, as far as the copy may read them.

A maintainer must not break: manifests may be somebody else's, and name any file. In an object store the
catalog's credentials end at the table. On this machine nothing does, so only files below the places that the
catalog itself checked are read: else `/etc/shadow` could be a data file.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import IO, Final
from urllib.parse import urlsplit

from cynosure.client.appending.stores import Access, Files, LocalFiles, open_files
from cynosure.common.errors import Forbidden

_LOCAL: Final = ("", "file")


class Reading:
    """Files of one table, to be read."""

    def __init__(self, places: Iterable[str], access: Access) -> None:
        """`places`: the table's location, and where its properties send files."""
        self._access = access
        self._places = [_to_path(each) for each in places if urlsplit(each).scheme in _LOCAL]
        self._open: dict[tuple[str, str, str], Files] = {}

    def open(self, path: str) -> Files:
        """The store that a file is in. `Forbidden` when it may not be read."""
        parts = urlsplit(path)
        if parts.scheme in _LOCAL:
            wanted = _to_path(path)
            if ".." in wanted.parts or not any(wanted.is_relative_to(each) for each in self._places):
                raise Forbidden(
                    "The table names a file of this machine that is outside its location",
                    fix="Leave it behind, or rewrite the table with an engine that can read the file.",
                    location=path,
                )
            return LocalFiles()
        key = (parts.scheme, parts.netloc, self._closest(path))
        if key not in self._open:
            self._open[key] = open_files(path, self._access)
        return self._open[key]

    async def read(self, path: str, into: IO[bytes]) -> int:
        """See `Files.read`."""
        return await self.open(path).read(path, into)

    def _closest(self, path: str) -> str:
        """The place of the credentials that count for a file."""
        places = [each.prefix.rstrip("/") for each in self._access.credentials]
        return max((each for each in places if f"{path}/".startswith(f"{each}/")), key=len, default="")


def _to_path(location: str) -> PurePosixPath:
    return PurePosixPath("/" + location.removeprefix("file:").lstrip("/"))
