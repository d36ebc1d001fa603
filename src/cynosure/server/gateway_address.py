"""Where the gateway of a data directory is, for commands on the same machine: DATA/gateway.json.

A maintainer must not break: nothing secret is in the file, and one that a killed gateway left behind leads
to an error that says so, never to somebody else's answer: whoever uses it speaks to a port of this machine
with a token that the catalog knows.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

_FILE: Final = "gateway.json"


class GatewayAddress(Struct, frozen=True, rename="kebab"):
    """Where a gateway and its catalog are."""

    url: str
    catalog_url: str
    pid: int = 0


@contextlib.contextmanager
def publish_address(data_dir: Path, url: str, catalog_url: str) -> Iterator[None]:
    """Inside the block the file is there."""
    path = data_dir / _FILE
    draft = path.with_name(f".{_FILE}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(GatewayAddress(url, catalog_url, os.getpid())) + b"\n")
    draft.replace(path)
    try:
        yield
    finally:
        found = find_address(data_dir)
        if found is not None and found.pid == os.getpid():
            path.unlink(missing_ok=True)


def find_address(data_dir: Path) -> GatewayAddress | None:
    """Where the gateway of a data directory is; `None` when none runs."""
    try:
        return msgspec.json.decode((data_dir / _FILE).read_bytes(), type=GatewayAddress)
    except (OSError, msgspec.DecodeError):
        return None
