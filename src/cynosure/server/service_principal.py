"""The principal of a service, made by the catalog itself: for `cynosure up`, which has no operator.

A maintainer must not break: credentials in the file are good, or the next start replaces them; and the file
is readable by its owner only, from the first moment.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from cynosure.auth.caller import operator_caller
from cynosure.auth.credentials import PrincipalWithCredentials
from cynosure.auth.errors import PrincipalExists, PrincipalRoleExists
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.principals import find_principal
from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.persistence.spi import RealmId
from cynosure.server.data_dir import RoleLock
from cynosure.server.service_credentials import CredentialsLine, read_file

DELEGATION: Final = "delegation-service"
GATEWAY: Final = "cynosure-gateway"
"""Names of the services' principals. Each has a principal role of its name, to be granted what it needs."""
SYSTEM: Final = "system"
_LOOK_S: Final = 0.05


async def provision_principal(
    identities: Identities, realm: RealmId, name: str, path: Path, *, is_trusted: bool = False
) -> None:
    """Make sure that the principal exists and that the file has its credentials.

    `is_trusted`: it may act on behalf of others, once and for all; who takes that away from it is not
    overruled as long as its credentials are good.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    caller = operator_caller(SYSTEM, realm)
    # Workers of one server start at once, and each new secret ends the one before.
    async with _alone(path.parent):
        if await _is_good(identities, realm, name, path):
            return
        with suppress(PrincipalRoleExists):
            await create_principal_role(identities, caller, NewPrincipalRole(name))
        made: PrincipalWithCredentials
        try:
            made = await create_principal(identities, caller, NewPrincipal(name))
        except PrincipalExists:
            made = await reset_credentials(identities, caller, name)
        await assign_principal_role(identities, caller, name, name)
        if is_trusted:
            await set_trusted_service(identities, caller, name, is_trusted=True)
        _write(path, name, made)


@asynccontextmanager
async def _alone(directory: Path) -> AsyncIterator[None]:
    lock = RoleLock(directory, "provision")
    # Taken by the very look that finds it free: others look as well, and one of them would be refused.
    while not lock.try_acquire():  # noqa: ASYNC110 - another process has no event for us
        await asyncio.sleep(_LOOK_S)
    try:
        yield
    finally:
        lock.release()


async def _is_good(identities: Identities, realm: RealmId, name: str, path: Path) -> bool:
    try:
        line = read_file(path)
    except Misconfigured:
        return False
    principal = await find_principal(identities.persistence, realm, name)
    return (
        principal is not None
        and principal.client_id == line.clientId
        and identities.hasher.find_match(Secret(line.clientSecret), principal.secrets) is not None
    )


def _write(path: Path, name: str, made: PrincipalWithCredentials) -> None:
    credentials = made.credentials
    line = CredentialsLine(credentials.client_id, credentials.client_secret.reveal(), name)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
