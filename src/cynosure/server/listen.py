"""Listening sockets: TCP for clients, a private Unix socket for operators.

The TCP socket is bound once, in the parent, and shared by all workers: whichever is free accepts, so no
connection waits behind a worker that is dead or stopped, and a port that is taken is found out once.
One socket per worker (SO_REUSEPORT) would spread an idle start more evenly but lose both.

A maintainer must not break: the operator socket is never reachable with more than mode 0600, not even
for a moment.
"""

import contextlib
import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cynosure.client.unix_socket import is_answering, short_path
from cynosure.common.errors import Misconfigured

_BACKLOG = 2048


def listen_tcp(host: str, port: int) -> socket.socket:
    """A socket that listens on the first address of `host`. Port 0 takes a free one."""
    try:
        family, kind, protocol, _, address = _first_address(host, port)
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _unusable(error, host, port) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise _unusable(error, host, port) from error
    return listener


def is_private(host: str) -> bool:
    """Whether only this machine reaches what listens on `host`. An unknown host is not private."""
    try:
        return ipaddress.ip_address(_first_address(host, 0)[4][0]).is_loopback
    except (OSError, ValueError):
        return False


def _first_address(host: str, port: int) -> Any:
    return socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]


def url_of(listener: socket.socket, host: str, *, is_tls: bool) -> str:
    """The base URL under which a client on this machine reaches the socket."""
    port = listener.getsockname()[1]
    shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared only
    if ":" in shown:
        shown = f"[{shown}]"
    return f"{'https' if is_tls else 'http'}://{shown}:{port}"


@contextlib.contextmanager
def listen_operator(path: Path) -> Iterator[socket.socket]:
    """A Unix socket of mode 0600 at `path`. What a killed server left there is replaced."""
    if is_answering(path):
        raise Misconfigured(
            "Another server answers on the operator socket",
            fix="Stop it, or use another data directory.",
            path=str(path),
        )
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_path(fresh) as name:
            listener.bind(name)
        # Order: nobody can connect before `listen`, so the mode is set while the socket is still deaf.
        fresh.chmod(0o600)
        listener.listen(64)
        listener.setblocking(False)
        inode = fresh.stat().st_ino
        fresh.replace(path)
    except OSError as error:
        listener.close()
        fresh.unlink(missing_ok=True)
        raise Misconfigured(
            "The operator socket cannot be made",
            fix="Choose a data directory on a local file system that this user can write to.",
            path=str(path),
            reason=error.strerror or str(error),
        ) from error
    try:
        yield listener
    finally:
        listener.close()
        with contextlib.suppress(FileNotFoundError):
            # A successor may already have put its own there.
            if path.stat().st_ino == inode:
                path.unlink()


def _unusable(error: OSError, host: str, port: int) -> Misconfigured:
    message, fix = "The address cannot be listened on", "Set server.host and server.port to usable values."
    if isinstance(error, socket.gaierror):
        message, fix = "The host name cannot be resolved", "Set --host to an address of this machine."
    elif error.errno == errno.EADDRINUSE:
        message = "The port is already in use"
        fix = f"Stop the process that uses port {port}, or choose another port with --port."
    elif error.errno == errno.EADDRNOTAVAIL:
        message, fix = "This machine does not have that address", "Set --host to an address of this machine."
    elif error.errno == errno.EACCES:
        message, fix = "This user may not use that port", "Choose a port above 1023 with --port."
    return Misconfigured(message, fix=fix, host=host, port=port, reason=error.strerror or str(error))
