"""The delegation service's principal, made by the catalog itself: for `cynosure up`, which has no operator.

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
from cynosure.auth.principals import find_principal
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import CatalogRoleExists
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.persistence.spi import CatalogId, RealmId
from cynosure.server.data_dir import RoleLock
from cynosure.server.delegation_credentials import CredentialsLine, read_file

PRINCIPAL: Final = "delegation-service"
"""Also the name of its principal role and of its role in each catalog."""
_SYSTEM: Final = "system"
_LOOK_S: Final = 0.05


async def provision_principal(identities: Identities, realm: RealmId, path: Path) -> None:
    """Make sure that the principal exists and that the file has its credentials."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    caller = operator_caller(_SYSTEM, realm)
    # Workers of one server start at once, and each new secret ends the one before.
    async with _alone(path.parent):
        if await _is_good(identities, realm, path):
            return
        with suppress(PrincipalRoleExists):
            await create_principal_role(identities, caller, NewPrincipalRole(PRINCIPAL))
        made: PrincipalWithCredentials
        try:
            made = await create_principal(identities, caller, NewPrincipal(PRINCIPAL))
        except PrincipalExists:
            made = await reset_credentials(identities, caller, PRINCIPAL)
        await assign_principal_role(identities, caller, PRINCIPAL, PRINCIPAL)
        _write(path, made)


class Rights:
    """What the service needs in a catalog, given before the first work there is ordered.

    So catalogs that are made later have it too, whoever makes them.
    """

    def __init__(self, directory: Directory, realm: RealmId) -> None:
        self._directory = directory
        self._realm = realm
        self._given: set[CatalogId] = set()

    async def ensure(self, order: TaskOrder) -> None:
        """Give the service's role what it needs for an order."""
        if order.realm != self._realm:
            return
        catalog = await self._directory.open(self._realm, order.table.catalog_name)
        if catalog.entity.id in self._given:
            return
        caller = operator_caller(_SYSTEM, self._realm)
        with suppress(CatalogRoleExists):
            await create_catalog_role(catalog, caller, PRINCIPAL, {})
        content = Grant(kind="catalog", privilege=Privilege.CATALOG_MANAGE_CONTENT)
        await grant_privilege(catalog, caller, PRINCIPAL, content)
        await assign_catalog_role(catalog, caller, PRINCIPAL, PRINCIPAL)
        self._given.add(catalog.entity.id)


@asynccontextmanager
async def _alone(directory: Path) -> AsyncIterator[None]:
    lock = RoleLock(directory, "provision")
    while lock.find_holder() is not None:  # noqa: ASYNC110 - another process has no event for us
        await asyncio.sleep(_LOOK_S)
    with lock:
        yield


async def _is_good(identities: Identities, realm: RealmId, path: Path) -> bool:
    try:
        line = read_file(path)
    except Misconfigured:
        return False
    principal = await find_principal(identities.persistence, realm, PRINCIPAL)
    return (
        principal is not None
        and principal.client_id == line.clientId
        and identities.hasher.find_match(Secret(line.clientSecret), principal.secrets) is not None
    )


def _write(path: Path, made: PrincipalWithCredentials) -> None:
    credentials = made.credentials
    line = CredentialsLine(credentials.client_id, credentials.client_secret.reveal(), PRINCIPAL)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(msgspec.json.encode(line) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
