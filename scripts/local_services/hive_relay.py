"""Run a server in a network of its own, and bring one port of it to loopback here.

    hive_relay.py PORT INNER_PORT COMMAND…

Linux only. The socket that listens here is made first and stays in the machine's network; then this process,
and with it the server that it starts, moves to a new one, where there is nothing but a loopback.

A maintainer must not break: standard library only; the server ends with this process, however that ends.
"""

import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys

_NEW_NETWORK = 0x40000000
_NEW_USER = 0x10000000
_SET_FLAGS = 0x8914
_UP_AND_RUNNING = 0x41
_DIE_WITH_PARENT = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def main(port: int, inner_port: int, command: list[str]) -> int:
    listener = socket.create_server(("127.0.0.1", port))
    move_to_new_network()
    # The lock that says whether the service runs is inherited by the server too.
    server = subprocess.Popen(command, close_fds=False, preexec_fn=die_with_parent)  # noqa: PLW1509 - no threads yet
    asyncio.run(relay(listener, inner_port, server))
    return server.wait()


def die_with_parent() -> None:
    _LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def move_to_new_network() -> None:
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEW_NETWORK) != 0:
        # Without the right to it, there is one in a user namespace of one's own.
        if _LIBC.unshare(_NEW_USER | _NEW_NETWORK) != 0:
            sys.exit(f"no network of its own: {os.strerror(ctypes.get_errno())}")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as out:
                out.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


async def relay(listener: socket.socket, inner_port: int, server: subprocess.Popen[bytes]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", inner_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    async with await asyncio.start_server(serve, sock=listener):
        await asyncio.to_thread(server.wait)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
