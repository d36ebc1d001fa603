"""The delegation service's own principal: where its credentials are read from.

A maintainer must not break: no error shows what is in the file.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.client.tokens import ClientCredentials
from cynosure.common.delegated.settings import ServiceSettings
from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret

_LOOK_S: Final = 0.05
_PATIENCE_S: Final = 120.0


class CredentialsLine(Struct, frozen=True):
    """What `--credentials-file` of any command writes: one line for a principal."""

    clientId: str
    clientSecret: str
    principal: str = ""

    def __repr__(self) -> str:
        return "CredentialsLine(…)"


def read_credentials(service: ServiceSettings) -> ClientCredentials:
    """The credentials that the settings give, themselves or in a file."""
    if service.credentials_file is not None:
        line = read_file(service.credentials_file)
        return ClientCredentials(line.clientId, Secret(line.clientSecret))
    if service.client_id is None or service.client_secret is None:
        raise Misconfigured(
            "The service has no principal of its own",
            fix="Run `cynosure delegation init`, and set delegation.service.credentials_file.",
        )
    return ClientCredentials(service.client_id, service.client_secret)


def read_file(path: Path) -> CredentialsLine:
    """The first line of a file with credentials."""
    try:
        return msgspec.json.decode(path.read_bytes().split(b"\n", 1)[0], type=CredentialsLine)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        # Without `from`: the cause would quote what is in the file.
        raise Misconfigured(
            "The credentials file cannot be read",
            fix="Let `cynosure delegation init` write one, and let this user read it.",
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
            "The catalog did not write credentials for the delegation service",
            fix="Look for the reason in the catalog's log.",
            path=str(path),
        ) from None
