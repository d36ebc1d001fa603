"""Realms: created with a root principal, looked at, changed, deleted. Operators only.

Deleting touches the realm's `catalogs`, its `principals` and the list of realms, one after the other:

1. *look* at the realm's entry in the list;
2. *close* `catalogs`: a commit that finds no catalog there and puts a mark that every later write asks for;
3. *close* `principals`: from here on nobody has any rights in the realm, and no token of it is good;
4. *unlist*, if the entry is still the one looked at;
5. delete the references (`persistence.scopes`), so that a realm of the same name begins with nothing.

A crash after 2 or 3 leaves a realm that can only be deleted; after 4, references that no list names.
Deleting it again completes it, and so does creating one of the same name.

Must not break: this order, and that nothing of a deleted realm is found in a later one.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, structs

from cynosure.auth.bootstrap import bootstrap_realm
from cynosure.auth.closing import CLOSED, is_closed
from cynosure.auth.credentials import Credentials
from cynosure.auth.errors import BuiltIn, NoSuchRealm, RealmNotEmpty
from cynosure.auth.identities import Identities
from cynosure.auth.names import check_properties
from cynosure.persistence import scopes
from cynosure.persistence.commit import Change, Committed, Committer, Prepared, Request, View
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import DEFAULT_REALM, REALMS, realm_reference
from cynosure.persistence.scopes import REALM_ENTRY, ListedRealm, RealmEntry, find_realm, is_realm_name
from cynosure.persistence.spi import RealmId
from cynosure.persistence.store import NewObject

OPERATOR: Final = "operator"


class CreatedRealm(Struct, frozen=True):
    """A new realm, and what its root authenticates with."""

    entry: RealmEntry
    credentials: Credentials | None
    """`None` when another server, starting just then, made its root and has shown the credentials."""


async def create_realm(
    identities: Identities,
    realm: RealmId,
    *,
    properties: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
    principal: str = OPERATOR,
) -> CreatedRealm:
    """Create it with a root that has these credentials, or random ones. `AlreadyExists` when there is one."""
    persistence = identities.persistence
    entry = await scopes.create_realm(
        _list(persistence),
        realm,
        backend=persistence.backend,
        ids=persistence.ids,
        clock=persistence.clock,
        principal=principal,
        properties=check_properties(properties or {}),
    )
    return CreatedRealm(entry, await bootstrap_realm(identities, realm, credentials))


async def list_realms(persistence: Persistence) -> list[RealmEntry]:
    """All realms in the order of their names, as of one moment."""
    return await scopes.load_realms((await _list(persistence).read()).state)


async def load_realm(persistence: Persistence, realm: RealmId) -> RealmEntry:
    """The realm of this name; `NoSuchRealm` when there is none."""
    return (await _require(await _view(persistence), realm)).entry


async def is_being_deleted(persistence: Persistence, realm: RealmId) -> bool:
    """Whether a deletion of it began and did not end."""
    return await is_closed((await persistence.read(realm_reference(realm, "catalogs"))).state)


async def update_realm(
    persistence: Persistence,
    realm: RealmId,
    *,
    set_properties: Mapping[str, str] | None = None,
    remove_properties: tuple[str, ...] = (),
    principal: str = OPERATOR,
) -> RealmEntry:
    """Change its properties. `NoSuchRealm` when there is none."""
    key = encode_key(realm)

    async def prepare(view: View) -> Prepared[RealmEntry]:
        ref, before = await _require(view, realm)
        kept = {name: value for name, value in before.properties.items() if name not in remove_properties}
        entry = structs.replace(before, properties=check_properties({**kept, **(set_properties or {})}))
        if entry == before:
            return Prepared(before)
        new = NewObject(REALM_ENTRY, persistence.ids.next(), entry)
        value = ObjRef(new.id, REALM_ENTRY.name).pack()
        feed = Change(kind="realm-updated", index="names", key=key, before=ref.pack(), after=value)
        return Prepared(entry, {"names": {key: value}}, [new], [feed])

    outcome = await _list(persistence).commit(Request(prepare, principal, operation="update-realm"))
    assert isinstance(outcome, Committed)  # noqa: S101 - the request has no idempotency key
    return outcome.result


async def delete_realm(persistence: Persistence, realm: RealmId, *, principal: str = OPERATOR) -> None:
    """Delete it. `RealmNotEmpty` when it has catalogs; `BuiltIn` for the default one."""
    if realm == DEFAULT_REALM:
        raise BuiltIn(
            "The default realm cannot be deleted", field="realm", fix="Drop its catalogs and leave it."
        )
    realms = _list(persistence)
    seen = await find_realm((await realms.read()).state, realm)
    if seen is None:
        await _finish(persistence, realm)
        return
    # A creator that died may have listed it without its references.
    await scopes.mend_realms(realms, persistence.backend, persistence.clock)
    # Order: catalogs first. If there is one, nothing was changed.
    for name in ("catalogs", "principals"):
        await _close(persistence, realm, name, principal)
    await scopes.unlist_realm(realms, seen, principal=principal)
    await scopes.clear_unlisted(realms, realm, persistence.backend)


async def _finish(persistence: Persistence, realm: RealmId) -> None:
    """Complete what was begun before; `NoSuchRealm` when there was nothing."""
    if not is_realm_name(realm):
        raise NoSuchRealm(realm[: scopes.MAX_REALM_CHARS])
    left = await persistence.backend.list_refs(realm)
    await scopes.clear_unlisted(_list(persistence), realm, persistence.backend)
    if not left:
        raise NoSuchRealm(realm)


async def _close(persistence: Persistence, realm: RealmId, name: str, principal: str) -> None:
    mark = b"%d" % persistence.clock.now_us()

    async def prepare(view: View) -> Prepared[None]:
        # The scan is remembered by the view, so a catalog that is created meanwhile makes it untrue.
        if name == "catalogs" and await view.scan("ids", limit=1):
            raise RealmNotEmpty("The realm has catalogs", fix="Drop its catalogs first.", realm=realm)
        if await is_closed(view):
            return Prepared(None)
        feed = Change(kind="realm-closed", index="marks", key=CLOSED, after=mark)
        return Prepared(None, {"marks": {CLOSED: mark}}, feed=[feed])

    committer = persistence.committer(realm_reference(realm, name))
    await committer.commit(Request(prepare, principal, operation="close-realm"))


def _list(persistence: Persistence) -> Committer:
    return persistence.committer(REALMS)


async def _view(persistence: Persistence) -> View:
    return (await _list(persistence).read()).state


async def _require(view: View, realm: RealmId) -> ListedRealm:
    found = await find_realm(view, realm)
    if found is None:
        raise NoSuchRealm(realm)
    return found
