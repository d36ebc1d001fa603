"""A listing of the files inside a decorator, as something that can be closed."""

from collections.abc import AsyncGenerator
from typing import cast

from cynosure.storage.fileio import FileInfo, FileIO
from cynosure.storage.location import Location


def open_listing(files: FileIO, prefix: Location) -> AsyncGenerator[FileInfo, None]:
    """The listing: whoever leaves early closes it, and so must a decorator that was left early."""
    return cast("AsyncGenerator[FileInfo, None]", files.list(prefix))
