"""Operator commands on realms, `realms.*`: create, look at, change and delete them; a new secret for a root.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults. Only `realms.create` and `realms.reset-root` answer with a secret, once, to
whoever may open the operator socket; nothing writes it down.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from msgspec import Struct

from cynosure.api.operator import OperatorCommand
from cynosure.auth.bootstrap import reset_root
from cynosure.auth.credentials import Credentials
from cynosure.auth.entities import ROOT
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_client_id, check_client_secret
from cynosure.auth.realms import (
    create_realm,
    delete_realm,
    is_being_deleted,
    list_realms,
    load_realm,
    update_realm,
)
from cynosure.common.errors import BadInput
from cynosure.common.progress import Report
from cynosure.common.secrets import Secret
from cynosure.persistence.scopes import RealmEntry
from cynosure.persistence.spi import RealmId

OpenIdentities = Callable[[bool], AbstractAsyncContextManager[Identities]]
"""Opens the principals of a store, or hands out the open ones. The argument: initialise it if it is empty."""


class CreateRealmParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `realms.create`."""

    name: str
    properties: dict[str, str] = {}
    client_id: str = ""
    """Of its root. Both empty: random ones."""
    client_secret: str = ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """Without the secret, also in tracebacks."""
        return [("name", self.name)]


class ListRealmsParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `realms.list`."""


class RealmParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For commands on one realm."""

    name: str


class UpdateRealmParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `realms.update`; what is left out stays."""

    name: str
    set_properties: dict[str, str] = {}
    remove_properties: tuple[str, ...] = ()


class RealmInfo(Struct, frozen=True):
    """One realm."""

    name: str
    created: str
    properties: dict[str, str] = {}
    is_being_deleted: bool = False
    """A deletion of it began and did not end: delete it again."""


class RootInfo(Struct, frozen=True):
    """A realm, and what its root authenticates with. Shown this once."""

    realm: str
    principal: str = ROOT
    client_id: str = ""
    client_secret: str = ""
    """Both empty when another server made the root, and has shown them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(realm={self.realm!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """Without the secret, also in tracebacks."""
        return [("realm", self.realm)]


def realm_commands(open_identities: OpenIdentities) -> list[OperatorCommand[Struct]]:
    """The commands, on the principals that `open_identities` gives."""
    commands = _Commands(open_identities)
    listed: list[tuple[str, type[Struct], object, str]] = [
        ("realms.create", CreateRealmParams, commands.create, "Create a realm with its root"),
        ("realms.list", ListRealmsParams, commands.list, "All realms"),
        ("realms.show", RealmParams, commands.show, "One realm"),
        ("realms.update", UpdateRealmParams, commands.update, "Change properties"),
        ("realms.delete", RealmParams, commands.delete, "Delete a realm without catalogs"),
        ("realms.reset-root", RealmParams, commands.reset_root, "New credentials for the root of a realm"),
    ]
    return [OperatorCommand(name, params, run, summary) for name, params, run, summary in listed]  # type: ignore[arg-type]


class _Commands:
    def __init__(self, open_identities: OpenIdentities) -> None:
        self._open = open_identities

    async def create(self, params: CreateRealmParams, report: Report) -> RootInfo:
        given = _given(params)
        async with self._open(True) as identities:
            created = await create_realm(
                identities, RealmId(params.name), properties=params.properties, credentials=given
            )
            return _shown(params.name, created.credentials)

    async def list(self, params: ListRealmsParams, report: Report) -> list[RealmInfo]:
        async with self._open(False) as identities:
            return [_describe(entry) for entry in await list_realms(identities.persistence)]

    async def show(self, params: RealmParams, report: Report) -> RealmInfo:
        async with self._open(False) as identities:
            realm, persistence = RealmId(params.name), identities.persistence
            entry = await load_realm(persistence, realm)
            return _describe(entry, is_going=await is_being_deleted(persistence, realm))

    async def update(self, params: UpdateRealmParams, report: Report) -> RealmInfo:
        async with self._open(False) as identities:
            changed = await update_realm(
                identities.persistence,
                RealmId(params.name),
                set_properties=params.set_properties,
                remove_properties=params.remove_properties,
            )
            return _describe(changed)

    async def delete(self, params: RealmParams, report: Report) -> RealmParams:
        async with self._open(False) as identities:
            await delete_realm(identities.persistence, RealmId(params.name))
            return params

    async def reset_root(self, params: RealmParams, report: Report) -> RootInfo:
        async with self._open(False) as identities:
            return _shown(params.name, await reset_root(identities, RealmId(params.name)))


def _given(params: CreateRealmParams) -> Credentials | None:
    if not params.client_id and not params.client_secret:
        return None
    if not params.client_id or not params.client_secret:
        raise BadInput(
            "Only one half of the credentials is given", field="clientId", fix="Give both, or none."
        )
    secret = check_client_secret(Secret(params.client_secret))
    return Credentials(check_client_id(params.client_id), secret)


def _shown(realm: str, credentials: Credentials | None) -> RootInfo:
    if credentials is None:
        return RootInfo(realm)
    return RootInfo(realm, client_id=credentials.client_id, client_secret=credentials.client_secret.reveal())


def _describe(entry: RealmEntry, *, is_going: bool = False) -> RealmInfo:
    created = datetime.fromtimestamp(entry.created_us / 1_000_000, UTC).isoformat(timespec="milliseconds")
    return RealmInfo(entry.name, created, entry.properties, is_being_deleted=is_going)
