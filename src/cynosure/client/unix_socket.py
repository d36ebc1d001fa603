"""Unix sockets whose path is longer than the operating system's 107 bytes.

A maintainer must not break: the socket stays in the data directory, where its permissions and its
owner are visible; only the way to name it changes.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cynosure.common.errors import Misconfigured

_MAX_BYTES = 107 if sys.platform == "linux" else 103


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A name for `path` that fits into a socket address, valid inside the block."""
    name = os.fspath(path)
    if len(os.fsencode(name)) <= _MAX_BYTES:
        yield name
        return
    if not Path("/proc/self/fd").is_dir():
        raise Misconfigured(
            "The path of a Unix socket is too long for this operating system",
            fix="Use a data directory with a shorter path.",
            path=name,
            max_bytes=_MAX_BYTES,
        )
    # Linux: a socket may be named through an open directory, so the directory's own length is no matter.
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
