"""Unix sockets: who answers, and how to name one whose path exceeds the operating system's 107 bytes.

A maintainer must not break: the socket stays in the data directory, where its permissions and its
owner are visible; only the way to name it changes.
"""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cynosure.common.errors import Misconfigured, Unavailable

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


def is_answering(path: Path) -> bool:
    """Whether a process accepts connections on this socket."""
    with short_path(path) as name, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(name)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except PermissionError as error:
            raise Unavailable(
                "The operator socket belongs to another user",
                fix="Run the command as the user that runs the server.",
                path=str(path),
            ) from error
        except OSError as error:
            raise Unavailable(
                "The operator socket does not answer",
                fix="Check whether the server hangs; restart it if so.",
                path=str(path),
                reason=str(error),
            ) from error
    return True
