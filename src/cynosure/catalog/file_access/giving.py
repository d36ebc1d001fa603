"""What a client gets to reach a table's files itself: credentials, or word that requests are signed for it.

Credentials where the client can use them and the store gives any; signatures where it asks for nothing else,
and where the store gives none. Neither where there is nothing to give: local files, or a storage
whose key has not been set yet.

Must not break: whoever calls has authorized the caller for exactly this, on the state that it gives here.
"""

from collections.abc import Mapping
from typing import NamedTuple

from cynosure.auth.caller import RENEWED_CREDENTIALS, Caller
from cynosure.catalog.file_access.modes import Delegation
from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.managed.state import TableState
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.storage.access.ports import Scope, Subject, Vended
from cynosure.storage.errors import StorageRefused, StorageUnavailable

_log = Log(__name__)


class Access(NamedTuple):
    """How a client reaches the files of a table."""

    config: Mapping[str, str] = {}
    """What every client of the storage is told."""
    vended: Vended | None = None
    is_signed: bool = False
    """Whether its requests are signed for it."""


def plain_access(catalog: OpenCatalog) -> Access:
    """What a client is told that brings its own credentials."""
    return Access(catalog.storage.client_config)


async def give_access(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    state: TableState,
    delegation: Delegation,
    *,
    is_writable: bool,
) -> Access:
    """Access to the files of a table, the way the client asked for, else the way there is.

    `LocationRefused` when the catalog does not allow a location of the table any more.
    """
    storage = catalog.storage
    if not delegation or (storage.vending is None and storage.signer is None):
        return plain_access(catalog)
    scope = table_scope(catalog, state, is_writable=is_writable)
    if storage.vending is None or (storage.signer is not None and not delegation.vended):
        return Access(storage.client_config, is_signed=True)
    try:
        vended = await load_vended(catalog, caller, table, scope)
    except (StorageRefused, StorageUnavailable) as error:
        # A store without a token service says so in many ways; and one whose is down still takes signatures.
        if storage.signer is None:
            raise
        _log.event("credentials.signing_instead", level=WARNING, error=error)
        return Access(storage.client_config, is_signed=True)
    return Access(storage.client_config, vended)


async def load_vended(catalog: OpenCatalog, caller: Caller, table: Identifier, scope: Scope) -> Vended | None:
    """Credentials for a validated scope, from memory if they are; `None` where the store gives none."""
    vending = catalog.storage.vending
    if RENEWED_CREDENTIALS in caller.capabilities:
        # It asks again while it reads: what leaks from one of its workers is soon of no use.
        vending = catalog.storage.scan_vending or vending
    if vending is None:
        return None
    subject = subject_of(catalog, caller, table)
    return vending.get(scope, subject) or await vending.vend(scope, subject)


async def give_access_to_new(
    catalog: OpenCatalog,
    caller: Caller,
    table: Identifier,
    state: TableState,
    delegation: Delegation,
    *,
    is_writable: bool,
) -> Access:
    """Access to a table that this very request has made.

    The table is there whatever the store says, and the client must hear of it: without credentials, which it
    can still ask for, rather than with an error that says nothing was done.
    """
    try:
        return await give_access(catalog, caller, table, state, delegation, is_writable=is_writable)
    except (StorageRefused, StorageUnavailable) as error:
        _log.event("table.created_without_credentials", level=WARNING, error=error)
        return plain_access(catalog)


def subject_of(catalog: OpenCatalog, caller: Caller, table: Identifier) -> Subject:
    """Whom credentials are made for."""
    return Subject(
        realm=caller.realm,
        principal=caller.principal,
        principal_id=caller.principal_id,
        catalog=catalog.entity.name,
        table=str(table),
    )
