"""Realms and catalogs as scopes of the store: how their references come to be, and go.

Creating a scope touches two references' worth of state, and only one row can be swapped at a time, so the
order is fixed:

1. *prepare* the scope's own references, empty; nobody can find them yet;
2. *list* it, with a commit to `realms` (or to the realm's `catalogs`): from here on it exists;
3. *adopt* the references: raise their generation, or create them again if they were swept.

A crash after 1 leaves references that no list names. The *repairer* (`sweep_unlisted`) deletes them when
they are older than the grace period: it reads the reference, then the list, and deletes the reference
only if it is still as read. Step 3 changes it, so whichever of the two comes second notices. A crash
between 2 and 3, while the repairer deletes, leaves a scope without references; `mend_realms` and
`mend_catalogs` make them. They also give catalogs the references that a later version brought.

Dropping goes the other way round: *unlist*, and the repairer deletes the references. Whoever unlists makes
sure first that nothing can be written there any more.

A catalog's references have its id in their keys, and are never made again. Those of a realm have its
*name*, and a name may come back. So a realm's old references are deleted, as the repairer would do it, by
whoever unlisted it, and again by whoever creates one of the same name (`clear_unlisted`). And every
reference of a realm begins with a greater generation than any had before: a commit prepared in the old realm
cannot be swapped into the new one.

Must not break: list before adopt; reference before list, in the repairer and in `clear_unlisted`; no
generation twice under one name.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import msgspec

from cynosure.common.clock import Clock
from cynosure.common.errors import AlreadyExists, BadInput, Conflict
from cynosure.persistence.commit import Change, Committed, Committer, Prepared, Request, State, View
from cynosure.persistence.ids import IdSource
from cynosure.persistence.index import after, decode_key, encode_key
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef, Stored, struct_type
from cynosure.persistence.references import (
    CATALOG_REFERENCES,
    REALM_REFERENCES,
    catalog_reference,
    ensure_reference,
    realm_reference,
)
from cynosure.persistence.spi import REALM_SCOPE, SYSTEM_REALM, Backend, CatalogId, RealmId, RefKey
from cynosure.persistence.store import NewObject

MAX_REALM_CHARS = 128


class RealmEntry(Stored, frozen=True):
    """A realm, as the list of realms has it."""

    name: str
    created_us: int
    properties: dict[str, str] = msgspec.field(default_factory=dict)


REALM_ENTRY = struct_type("realm", RealmEntry)


async def create_realm(
    realms: Committer,
    realm: RealmId,
    *,
    backend: Backend,
    ids: IdSource,
    clock: Clock,
    principal: str,
    properties: Mapping[str, str] | None = None,
) -> RealmEntry:
    """Create a realm; `AlreadyExists` when there is one of this name. Nothing of an earlier one is in it."""
    check_realm_name(realm)
    unlisted = await _clear_unlisted(realms, realm, backend)
    if unlisted is None:
        raise _realm_exists(realm)
    keys, generation = _keys_of(realm), _next_generation(unlisted)
    # What another creator made since is as new as ours.
    await prepare_references(backend, keys, clock, generation=generation)
    name_key = encode_key(realm)

    async def prepare(view: View) -> Prepared[RealmEntry]:
        if await view.find("names", name_key) is not None:
            raise _realm_exists(realm)
        entry = RealmEntry(name=realm, created_us=clock.now_us(), properties=dict(properties or {}))
        new = NewObject(REALM_ENTRY, ids.next(), entry)
        value = ObjRef(new.id, REALM_ENTRY.name).pack()
        feed = Change(kind="realm-created", index="names", key=name_key, after=value)
        return Prepared(entry, {"names": {name_key: value}}, [new], [feed])

    outcome = await realms.commit(Request(prepare, principal, operation="create-realm"))
    await adopt_references(backend, keys, clock, generation=generation + 1)
    assert isinstance(outcome, Committed)  # noqa: S101 - the request has no idempotency key
    return outcome.result


class ListedRealm(NamedTuple):
    """A realm and the version of its entry that the list has."""

    ref: ObjRef
    entry: RealmEntry


async def find_realm(view: View, realm: RealmId) -> ListedRealm | None:
    """The realm of this name, or `None` when the list has none."""
    value = await view.find("names", encode_key(realm))
    if value is None:
        return None
    ref = ObjRef.unpack(value)
    return ListedRealm(ref, (await view.load_many(REALM_ENTRY, [ref.id]))[0])


async def unlist_realm(realms: Committer, seen: ListedRealm, *, principal: str) -> None:
    """Remove a realm from the list if it is still as `seen`; `Conflict` when it is not.

    Order: nothing can be written to it any more, and `clear_unlisted` comes after.
    """
    name = RealmId(seen.entry.name)
    key = encode_key(name)

    async def prepare(view: View) -> Prepared[None]:
        if await view.find("names", key) != seen.ref.pack():
            raise Conflict("The realm was changed while it was being deleted", fix="Delete it again.")
        feed = Change(kind="realm-deleted", index="names", key=key, before=seen.ref.pack())
        return Prepared(None, {"names": {key: None}}, feed=[feed])

    await realms.commit(Request(prepare, principal, operation="delete-realm"))


async def clear_unlisted(realms: Committer, realm: RealmId, backend: Backend) -> bool:
    """Delete the references of a realm that is not in the list; `False` when it is."""
    return await _clear_unlisted(realms, realm, backend) is not None


async def _clear_unlisted(realms: Committer, realm: RealmId, backend: Backend) -> State | None:
    """As `clear_unlisted`; the state of the list that did not have it."""
    keys = _keys_of(realm)
    while True:
        # Order: references before the list. One that is created meanwhile is adopted after it is listed, so
        # either the list shows it, or the reference is not as read any more.
        refs = [ref for ref in await backend.fetch_refs(keys) if ref is not None]
        state = (await realms.read(is_fresh=True)).state
        if await find_realm(state, realm) is not None:
            return None
        if all([await backend.delete_ref(ref) for ref in refs]):
            return state


def _next_generation(realms: State) -> int:
    """Greater than any that a reference of a realm had which was deleted before this state of the list.

    Every deletion is a commit to the list. The lower bits are left to garbage collections, which raise it.
    """
    return realms.commit.record.sequence << 32


async def load_realms(view: View) -> list[RealmEntry]:
    """All realms in the order of their names."""
    ids = [ObjRef.unpack(value).id for _, value in await scan_all(view, "names", b"")]
    return await view.load_many(REALM_ENTRY, ids)


async def list_realms(realms: Committer) -> list[RealmId]:
    """Names of all realms, in order."""
    state = (await realms.read()).state
    names: list[RealmId] = []
    start = b""
    while entries := await state.scan("names", start=start, limit=1_000):
        names += [RealmId(decode_key(key)[0]) for key, _ in entries]
        start = after(entries[-1][0])
    return names


def is_realm_name(realm: str) -> bool:
    """Whether a realm may be called that: headers, paths and files can carry it, and it is not reserved."""
    if not 1 <= len(realm) <= MAX_REALM_CHARS or not realm[0].isalnum():
        return False
    return realm.isascii() and all(each.isalnum() or each in "-_." for each in realm)


def check_realm_name(realm: str) -> None:
    """Refuse what `is_realm_name` denies."""
    if not is_realm_name(realm):
        raise BadInput(
            "Not a realm name",
            field="realm",
            fix=f"Use up to {MAX_REALM_CHARS} letters, digits, '-', '_', '.'; begin with a letter or digit.",
            realm=realm[:MAX_REALM_CHARS],
        )


def _keys_of(realm: RealmId) -> list[RefKey]:
    return [realm_reference(realm, name) for name in REALM_REFERENCES]


def _realm_exists(realm: RealmId) -> AlreadyExists:
    return AlreadyExists("There is a realm of this name", fix="Choose another name.", realm=realm)


# --- references of a scope ------------------------------------------------------------------------


async def prepare_references(
    backend: Backend, keys: Iterable[RefKey], clock: Clock, *, generation: int = 0
) -> None:
    """Step 1: create what does not exist."""
    for key in keys:
        await ensure_reference(backend, key, clock, generation=generation)


async def adopt_references(
    backend: Backend, keys: Iterable[RefKey], clock: Clock, *, generation: int = 1
) -> None:
    """Step 3: make sure that what was prepared is not being swept. `generation` is for what was swept."""
    for key in keys:
        while True:
            ref = (await backend.fetch_refs([key]))[0]
            if ref is None:
                # Another generation: a repairer, stopped since it read the first one, must not take this for
                # the same.
                if await ensure_reference(backend, key, clock, generation=generation):
                    break
                continue
            if await backend.swap_ref(ref, ref._replace(generation=ref.generation + 1)):
                break


async def mend_realms(realms: Committer, backend: Backend, clock: Clock) -> list[RefKey]:
    """Make the references that listed realms lack; those that were made."""
    state = (await realms.read()).state
    keys = [key for entry in await load_realms(state) for key in _keys_of(RealmId(entry.name))]
    return await _mend(keys, backend, clock, generation=_next_generation(state) + 1)


async def list_catalog_ids(catalogs: Committer) -> list[CatalogId]:
    """Ids of all catalogs that a realm's list names, in order."""
    state = (await catalogs.read()).state
    ids: list[CatalogId] = []
    start = b""
    while entries := await state.scan("ids", start=start, limit=1_000):
        ids += [CatalogId(decode_key(key)[0]) for key, _ in entries]
        start = after(entries[-1][0])
    return ids


async def mend_catalogs(catalogs: Committer, backend: Backend, clock: Clock) -> list[RefKey]:
    """Make the references that the catalogs of one realm lack; those that were made."""
    realm = catalogs.key.realm
    ids = await list_catalog_ids(catalogs)
    keys = [catalog_reference(realm, catalog, name) for catalog in ids for name in CATALOG_REFERENCES]
    return await _mend(keys, backend, clock, generation=1)


async def _mend(keys: Sequence[RefKey], backend: Backend, clock: Clock, *, generation: int) -> list[RefKey]:
    missing: list[RefKey] = []
    batch = backend.limits.fetch_batch
    for at in range(0, len(keys), batch):
        found = await backend.fetch_refs(keys[at : at + batch])
        missing += [key for key, ref in zip(keys[at : at + batch], found, strict=True) if ref is None]
    await adopt_references(backend, missing, clock, generation=generation)
    return missing


IsListed = Callable[[RefKey], Awaitable[bool]]
"""Whether the scope of a reference is listed, asked of the current state."""


async def sweep_unlisted(
    backend: Backend, is_listed: IsListed, *, clock: Clock, grace: timedelta
) -> list[RefKey]:
    """The repairer: delete references of scopes that no list names. Their objects are garbage then."""
    before_us = clock.now_us() - int(grace.total_seconds() * 1_000_000)
    swept: list[RefKey] = []
    for ref in await backend.list_refs():
        is_system = ref.key.realm == SYSTEM_REALM and ref.key.catalog == REALM_SCOPE
        if is_system or ref.created_us >= before_us:
            continue
        # Order: the reference was read before the list is.
        if not await is_listed(ref.key) and await backend.delete_ref(ref):
            swept.append(ref.key)
    return swept
