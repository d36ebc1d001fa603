"""Where a realm's signing keys are kept: its `settings`, under one name.

Must not break: a key is made by a commit that checks again whether one is needed, so of several servers that
need the first key, or the next one, exactly one makes it and all use it.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa

from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.committing import commit_part
from cynosure.auth.errors import NoSuchRealm
from cynosure.auth.settings import TokenSettings
from cynosure.auth.tokens.signing_keys import (
    SIGNING_KEYS,
    Signer,
    SigningKeys,
    StoredKey,
    apply_rotation,
    generate_private,
    open_public,
    open_signer,
    rewrap_key,
    seal_key,
)
from cynosure.auth.tokens.times import LEEWAY_US
from cynosure.common.errors import CorruptObject, Misconfigured, NotFound
from cynosure.common.keyring import Keyring
from cynosure.persistence.commit import Base, Change, Prepared, View, find_object
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import realm_reference
from cynosure.persistence.scopes import is_realm_name
from cynosure.persistence.spi import ObjId, RealmId
from cynosure.persistence.store import NewObject

_KEY: Final = encode_key("signing-keys")
_US: Final = timedelta(microseconds=1)
_SYSTEM: Final = "system"

GenerateKey = Callable[[], rsa.RSAPrivateKey]


class _Known(NamedTuple):
    head: ObjId
    stored: SigningKeys
    public: dict[str, rsa.RSAPublicKey]


class KeyStore:
    """The signing keys of all realms, as one process uses them."""

    def __init__(
        self,
        persistence: Persistence,
        keyring: Callable[[], Keyring],
        settings: TokenSettings,
        generate: GenerateKey = generate_private,
    ) -> None:
        self._persistence = persistence
        self._generate_private = generate
        self._keyring = keyring
        self._clock = persistence.clock
        self._key_lifetime_us = settings.key_lifetime // _US
        # Who checks may be ahead of who signed, and goes on for the leeway.
        self._token_lifetime_us = settings.lifetime // _US + 2 * LEEWAY_US
        self._known: dict[RealmId, _Known] = {}
        self._signers: dict[RealmId, Signer] = {}
        self._making: dict[RealmId, asyncio.Task[SigningKeys]] = {}

    async def load(self, realm: RealmId) -> SigningKeys:
        """The keys as the store has them now; none before the first token. `NoSuchRealm` without a realm."""
        return (await self._load(realm)).stored

    async def load_public(self, realm: RealmId) -> Mapping[str, rsa.RSAPublicKey]:
        """The keys that tokens are checked with now, by id."""
        known = await self._load(realm)
        now_us = self._clock.now_us()
        return {
            key.kid: known.public[key.kid]
            for key in known.stored.keys
            if not key.retired_us or now_us < key.good_until_us
        }

    async def load_signer(self, realm: RealmId) -> Signer:
        """The key that signs now; made when there is none, or when its time is over."""
        stored = await self.load(realm)
        if not stored.keys or self._is_due(stored.keys[0]):
            # One of many requests makes it; the others wait for that one.
            making = self._making.get(realm)
            if making is None:
                making = self._making[realm] = asyncio.create_task(self._make_due(realm))
                making.add_done_callback(lambda task: self._made(realm, task))
            stored = await asyncio.shield(making)
        newest = stored.keys[0]
        signer = self._signers.get(realm)
        if signer is None or signer.kid != newest.kid:
            signer = self._signers[realm] = open_signer(newest, self._keyring(), realm)
        return signer

    async def require_keyring(self, realm: RealmId) -> None:
        """Refuse to go on with a keyring that does not open the realm's keys. For the start of a server."""
        stored = await self.load(realm)
        try:
            if stored.keys:
                open_signer(stored.keys[0], self._keyring(), realm)
        except (CorruptObject, Misconfigured) as error:
            raise Misconfigured(
                "This keyring is not the one that the store was written with",
                fix="Give all servers on a store the same keyring.file or keyring.keys.",
                realm=realm,
                reason=error.message,
            ) from error

    async def rotate(self, caller: Caller, *, revoke: bool = False) -> SigningKeys:
        """Let a new key sign from now on. `revoke`: all tokens of the keys before it are refused."""
        # Not `load`: this is also the way out when what is stored is damaged.
        await self._read(caller.realm)
        new = await self._generate(caller.realm)

        def apply(stored: SigningKeys) -> SigningKeys:
            before = () if revoke else stored.keys
            return msgspec.structs.replace(stored, keys=self._rotated(before, new))

        return await self._change(caller, "rotate-signing-keys", apply)

    async def rewrap(self, caller: Caller) -> int:
        """Seal all keys under the primary master key; how many were not."""
        keyring = self._keyring()
        before = await self.load(caller.realm)

        def apply(stored: SigningKeys) -> SigningKeys:
            keys = tuple(rewrap_key(key, keyring, caller.realm) for key in stored.keys)
            # What is rewrapped already comes back as it is.
            return stored if keys == stored.keys else msgspec.structs.replace(stored, keys=keys)

        after = {key.kid: key.sealed for key in (await self._change(caller, "rewrap-keys", apply)).keys}
        return sum(after.get(key.kid, key.sealed) != key.sealed for key in before.keys)

    async def _make_due(self, realm: RealmId) -> SigningKeys:
        new = await self._generate(realm)

        def apply(stored: SigningKeys) -> SigningKeys:
            if stored.keys and not self._is_due(stored.keys[0]):
                return stored  # Another server was faster.
            return msgspec.structs.replace(stored, keys=self._rotated(stored.keys, new))

        return await self._change(operator_caller(_SYSTEM, realm), "make-signing-key", apply)

    def _made(self, realm: RealmId, task: asyncio.Task[SigningKeys]) -> None:
        del self._making[realm]
        if not task.cancelled():
            task.exception()  # Everyone who waited may be gone; that is not worth a warning.

    async def _generate(self, realm: RealmId) -> StoredKey:
        private = await asyncio.to_thread(self._generate_private)
        return seal_key(private, self._keyring(), realm, self._clock.now_us())

    def _rotated(self, before: tuple[StoredKey, ...], new: StoredKey) -> tuple[StoredKey, ...]:
        return apply_rotation(before, new, now_us=new.created_us, lifetime_us=self._token_lifetime_us)

    def _is_due(self, key: StoredKey) -> bool:
        return self._clock.now_us() - key.created_us >= self._key_lifetime_us

    async def _load(self, realm: RealmId) -> _Known:
        base = await self._read(realm)
        known = self._known.get(realm)
        if known is None or known.head != base.ref.head:
            stored = await find_object(base.state, "names", _KEY, SIGNING_KEYS) or SigningKeys()
            known = _Known(base.ref.head, stored, {key.kid: open_public(key) for key in stored.keys})
            self._known[realm] = known
        return known

    async def _read(self, realm: RealmId) -> Base:
        if not is_realm_name(realm):
            raise NoSuchRealm(realm[:128])
        try:
            return await self._persistence.read(realm_reference(realm, "settings"))
        except NotFound as error:
            raise NoSuchRealm(realm) from error

    async def _change(
        self, caller: Caller, operation: str, apply: Callable[[SigningKeys], SigningKeys]
    ) -> SigningKeys:
        async def prepare(view: View) -> Prepared[SigningKeys]:
            before = await view.find("names", _KEY)
            stored = await find_object(view, "names", _KEY, SIGNING_KEYS) or SigningKeys()
            changed = apply(stored)
            if changed is stored:
                return Prepared(stored)
            new = NewObject(SIGNING_KEYS, self._persistence.ids.next(), changed)
            value = ObjRef(new.id, SIGNING_KEYS.name).pack()
            detail = raw_detail({"id": changed.keys[0].kid, "name": changed.keys[0].kid})
            feed = Change(
                kind="signing-keys-changed",
                index="names",
                key=_KEY,
                before=before,
                after=value,
                detail=detail,
            )
            return Prepared(changed, {"names": {_KEY: value}}, [new], [feed])

        committer = self._persistence.committer(realm_reference(caller.realm, "settings"))
        # Operators and the server itself only: there is no right to be asked for.
        return await commit_part(committer, caller, operation, prepare)
