"""Operator commands on the keys that sign tokens: `tokens.keys`, `tokens.rotate`, `tokens.rewrap`.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults.
"""

from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from cynosure.api.operator import OperatorCommand
from cynosure.auth.caller import operator_caller
from cynosure.auth.tokens.key_store import KeyStore
from cynosure.auth.tokens.signing_keys import StoredKey
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring import sealed_key_id
from cynosure.common.progress import Progress, Report
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import DEFAULT_REALM, REALMS
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.spi import RealmId
from cynosure.server.settings import Settings
from cynosure.server.store_commands import OpenStore

_US: Final = 1_000_000


class KeysParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `tokens.keys`."""

    realm: str = DEFAULT_REALM


class RotateParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `tokens.rotate`."""

    realm: str = DEFAULT_REALM
    revoke: bool = False
    """Refuse the tokens of all earlier keys."""


class RewrapParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `tokens.rewrap`: all realms."""


class KeyInfo(Struct, frozen=True):
    """A key that signs tokens, or did."""

    kid: str
    created_at: str
    retired_at: str | None
    """When another one began to sign; none while it signs."""
    good_until: str | None
    """When the last of its tokens expires."""
    master_key: str
    """Which master key of the keyring protects it."""


class Rewrapped(Struct, frozen=True):
    """What `tokens.rewrap` did."""

    keys: int
    realms: int


def token_commands(open_store: OpenStore, settings: Settings) -> list[OperatorCommand[Any]]:
    """The commands, on the store that `open_store` gives."""

    def keys_of(persistence: Persistence) -> KeyStore:
        # Opened by the command that needs it, so that looking at a store makes no key file.
        return KeyStore(
            persistence,
            lambda: open_keyring(settings.keyring, settings.server.data_dir),
            settings.auth.tokens,
        )

    async def run_keys(params: KeysParams, report: Report) -> list[KeyInfo]:
        async with open_store(False) as persistence:
            stored = await keys_of(persistence).load(RealmId(params.realm))
            return [_info(key) for key in stored.keys]

    async def run_rotate(params: RotateParams, report: Report) -> list[KeyInfo]:
        async with open_store(False) as persistence:
            caller = operator_caller(realm=RealmId(params.realm))
            stored = await keys_of(persistence).rotate(caller, revoke=params.revoke)
            return [_info(key) for key in stored.keys]

    async def run_rewrap(params: RewrapParams, report: Report) -> Rewrapped:
        async with open_store(False) as persistence:
            keys, count = keys_of(persistence), 0
            realms = await list_realms(persistence.committer(REALMS))
            for done, realm in enumerate(realms):
                report(Progress("Rewrapping", done=done, total=len(realms)))
                count += await keys.rewrap(operator_caller(realm=realm))
            return Rewrapped(count, len(realms))

    return [
        OperatorCommand("tokens.keys", KeysParams, run_keys, "The keys that sign a realm's tokens"),
        OperatorCommand("tokens.rotate", RotateParams, run_rotate, "Let a new key sign a realm's tokens"),
        OperatorCommand(
            "tokens.rewrap", RewrapParams, run_rewrap, "Protect all signing keys by the primary master key"
        ),
    ]


def _info(key: StoredKey) -> KeyInfo:
    return KeyInfo(
        key.kid,
        _moment(key.created_us),
        _moment(key.retired_us) if key.retired_us else None,
        _moment(key.good_until_us) if key.good_until_us else None,
        sealed_key_id(key.sealed),
    )


def _moment(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / _US, UTC).isoformat(timespec="seconds")
