"""The own principal of a service that is a client of the catalog: where its credentials are read from.

A maintainer must not break: no error shows what is in the file.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.client.tokens import ClientCredentials
from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.server.safe_settings import OwnPrincipal

_LOOK_S: Final = 0.05
_PATIENCE_S: Final = 120.0


class CredentialsLine(Struct, frozen=True):
    """What `--credentials-file` of any command writes: one line for a principal."""

    clientId: str
    clientSecret: str
    principal: str = ""

    def __repr__(self) -> str:
        return "CredentialsLine(…)"


def read_credentials(service: OwnPrincipal) -> ClientCredentials:
    """The credentials that the settings give, themselves or in a file. `require_principal` has passed."""
    if service.credentials_file is not None:
        line = read_file(service.credentials_file)
        return ClientCredentials(line.clientId, Secret(line.clientSecret))
    assert service.client_id is not None  # noqa: S101 - see above
    assert service.client_secret is not None  # noqa: S101
    return ClientCredentials(service.client_id, service.client_secret)


def read_file(path: Path) -> CredentialsLine:
    """The first line of a file with credentials."""
    try:
        return msgspec.json.decode(path.read_bytes().split(b"\n", 1)[0], type=CredentialsLine)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        # Without `from`: the cause would quote what is in the file.
        raise Misconfigured(
            "The credentials file cannot be read",
            fix="Let `cynosure delegation init` (or `gateway init`) write one, and let this user read it.",
            path=str(path),
            reason=type(error).__name__,
        ) from None


async def wait_for_file(path: Path) -> None:
    """Wait until a catalog that starts at the same time has written the file."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while not os.access(path, os.F_OK):  # noqa: ASYNC110 - another process has no event for us
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise Misconfigured(
            "The catalog did not write credentials for this service",
            fix="Look for the reason in the catalog's log.",
            path=str(path),
        ) from None
