"""Proof that the indexes of a catalog say the same of names, ids, places, reservations, policies and drops.

Every commit changes all of them together, so they can disagree only by a mistake of ours or by damage. Part
of `cynosure store check`, beside the proof that everything reachable is there.

Must not break: what can be told without harm is told; nothing is changed, and nothing is kept in memory that
grows with the number of tables; only the ids of what was dropped are.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from cynosure.catalog.adopting import decode_adopted, find_adopted_by_id
from cynosure.catalog.ceding import HOLDER, is_ceded
from cynosure.catalog.ceding import INDEX as CEDED
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.entities import GENERIC_TABLE, NAMESPACE, POLICY, TABLE_FACADE
from cynosure.catalog.locations import ID_BYTES, location_key, parse_place
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import ADOPTING, BEING_MOVED, namespace_key, path_of
from cynosure.catalog.policies.mappings import MAPPINGS, POLICY_MAPPING, THE_CATALOG, both_keys
from cynosure.catalog.purging.tombstone import IDS as TOMBSTONE_IDS
from cynosure.catalog.purging.tombstone import PURGES, TOMBSTONE, TRACES, putting
from cynosure.catalog.staged import IDS, STAGED, adding
from cynosure.common.errors import CynosureError
from cynosure.persistence.commit import View
from cynosure.persistence.commit.view import Entries, find_object
from cynosure.persistence.index import after, decode_id_key, decode_key, encode_id_key, encode_key
from cynosure.persistence.objects import ObjectType, ObjRef
from cynosure.persistence.spi import ObjId

_PAGE: Final = 500
_TIME_BYTES: Final = 8
_TYPES: Final[dict[str, ObjectType[Any]]] = {
    each.name: each for each in (NAMESPACE, TABLE, POINTER, VIEW, GENERIC_TABLE, POLICY, TABLE_FACADE)
}
_LETTERS: Final = {
    NAMESPACE.name: "n", TABLE.name: "t", POINTER.name: "t", VIEW.name: "v", GENERIC_TABLE.name: "g",
    POLICY.name: "p", TABLE_FACADE.name: "f",
}  # fmt: skip
_MARKS: Final = ("from", "id", "room")
"""Of `adopting`: what is no table or view on its way."""
_WAITING: Final = ("i", "w", "x", "y", "z")
"""Of `remote`: ids and policies that wait for a table or namespace (`federation.mirror`)."""

Tell = Callable[[str], None]


async def find_disagreements(view: View, *, most: int = 100) -> list[str]:
    """What the indexes of one state of a catalog's `main` contradict each other in, at most about `most`."""
    problems: list[str] = []

    def tell(problem: str) -> None:
        if len(problems) < most:
            problems.append(problem)

    for check in (
        _check_names,
        _check_ids,
        _check_places,
        _check_staged,
        _check_mappings,
        _check_gone,
        _check_purges,
        _check_seen,
        _check_passed,
    ):
        try:
            await check(view, tell)
        except CynosureError as error:
            tell(f"{check.__name__.removeprefix('_check_')}: {error}")
    return problems


async def _check_names(view: View, tell: Tell) -> None:
    """Everything that has a name has its id, its parent and its places."""
    async for page in _pages(view, "names"):
        for key, ref, held in await _load_page(view, page):
            name = _shown(key)
            if not name.startswith(_LETTERS[ref.type]):
                tell(f"{name}: is a {ref.type}")
            if await view.find("ids", encode_id_key(held.id)) != key:
                tell(f"{name}: its id leads elsewhere")
            parent = path_of(key)[:-1]
            if parent and await view.find("names", namespace_key(parent)) is None:
                tell(f"{name}: its namespace is gone")
            await _require_held(view, held, name, tell)


async def _check_ids(view: View, tell: Tell) -> None:
    async for id_key, key in _entries(view, "ids"):
        if await view.find("names", key) is None:
            tell(f"id {decode_id_key(id_key)}: leads to {_shown(key)}, which is gone")


async def _check_places(view: View, tell: Tell) -> None:
    """Every place is held by something that says so, and no two of different holders overlap."""
    # What is being given away is inside what was ceded until it is gone.
    is_moving = await view.find("moving", BEING_MOVED) is not None
    async for key, holder in _entries(view, "locations"):
        parts = decode_key(key)
        if not await _is_held(view, key, holder):
            tell(f"place {_place(key)}: of {decode_id_key(holder[:ID_BYTES])}, which does not hold it")
        for length in range(2, len(parts)):
            above = await view.find("locations", encode_key(*parts[:length]))
            if above is None or (is_moving and above == HOLDER):
                continue
            if above[:ID_BYTES] != holder[:ID_BYTES]:
                tell(f"place {_place(key)}: inside that of {decode_id_key(above[:ID_BYTES])}")


async def _is_held(view: View, key: bytes, holder: bytes) -> bool:
    """Whether whoever is named by an entry says that it holds this place. A newer version's may."""
    if holder == HOLDER:
        return await is_ceded(view, key)
    if len(holder) > ID_BYTES:
        dropped = await find_object(view, "dropped", holder[ID_BYTES:], DROPPED)
        if dropped is None or encode_id_key(dropped.entity_id) != holder[:ID_BYTES]:
            return False
        return key in _place_keys(Held(dropped.entity_id, dropped.location, dropped.claims))
    if (name := await view.find("ids", holder)) is not None:
        value = await view.find("names", name)
        if value is None:
            return False
        found = await _load_page(view, [(name, value)])
        return not found or key in _place_keys(found[0][2])
    if (adopted := await find_adopted_by_id(view, ObjId(decode_id_key(holder)))) is not None:
        return key in _place_keys(adopted.held)
    staged = await find_object(view, "staged", holder, STAGED)
    return staged is not None and key in _place_keys(staged.held)


async def _check_staged(view: View, tell: Tell) -> None:
    """A reservation has both of its entries and its places, and there is no table of its id yet."""
    seen = 0
    async for key, value in _entries(view, "staged", start=IDS):
        (staged,) = await view.load_many(STAGED, [ObjRef.unpack(value).id])
        name = f"reservation {staged.id}"
        _, changes = adding(staged, ObjRef.unpack(value).id)
        seen += len(changes["staged"])
        if key not in changes["staged"]:
            tell(f"{name}: has the id of another")
        for entry, wanted in changes["staged"].items():
            if await view.find("staged", entry) != wanted:
                tell(f"{name}: cannot be found by id and by path")
        if await view.find("ids", encode_id_key(staged.id)) is not None:
            tell(f"{name}: its table exists")
        await _require_held(view, staged.held, name, tell)
    total = 0
    async for _ in _entries(view, "staged"):
        total += 1
    if total != seen:
        tell(f"reservations: {total} entries instead of {seen}")


async def _check_mappings(view: View, tell: Tell) -> None:
    """What is attached is attached from both sides, by a policy that is there, to what is there or can be."""
    dropped = {each.entity_id async for each in _dropped(view)}
    async for key, value in _entries(view, MAPPINGS):
        (mapping,) = await view.load_many(POLICY_MAPPING, [ObjRef.unpack(value).id])
        name = f"mapping of policy {mapping.policy_id} to {mapping.target_id}"
        keys = both_keys(mapping.policy_id, mapping.target_id)
        if key not in keys:
            tell(f"{name}: has the key of another")
        for each in keys:
            if await view.find(MAPPINGS, each) != value:
                tell(f"{name}: the two directions differ")
        policy = await view.find("ids", encode_id_key(mapping.policy_id))
        if policy is None or not policy.startswith(b"p"):
            tell(f"{name}: the policy is gone")
        target = mapping.target_id
        if target == THE_CATALOG or target in dropped:
            continue
        if await view.find("ids", encode_id_key(target)) is None:
            tell(f"{name}: the target is gone")


async def _check_gone(view: View, tell: Tell) -> None:
    """What was dropped is not there as well; what was told about tables is told by time."""
    async for key, value in _entries(view, "notified"):
        if not _shown(key).startswith("t") or len(value) != _TIME_BYTES:
            tell(f"notified {_shown(key)}: is not the time of a table")
    async for each in _dropped(view):
        if await view.find("ids", encode_id_key(each.entity_id)) is not None:
            tell(f"dropped {each.kind} {each.entity_id}: exists as well")


async def _check_purges(view: View, tell: Tell) -> None:
    """A tombstone is found by id and by path, and has what was dropped."""
    seen = 0
    async for _, value in _entries(view, PURGES, start=TOMBSTONE_IDS):
        (tombstone,) = await view.load_many(TOMBSTONE, [ObjRef.unpack(value).id])
        name = f"tombstone {tombstone.entity_id}"
        _, changes = putting(tombstone, ObjRef.unpack(value).id)
        seen += len(changes[PURGES])
        for entry, wanted in changes[PURGES].items():
            if await view.find(PURGES, entry) != wanted:
                tell(f"{name}: cannot be found by id and by path")
        dropped = await find_object(view, "dropped", encode_id_key(tombstone.drop_id), DROPPED)
        if dropped is None or dropped.entity_id != tombstone.entity_id:
            tell(f"{name}: what was dropped is gone")
    total = 0
    async for key, _ in _entries(view, PURGES):
        total += not key.startswith(TRACES)
    if total != seen:
        tell(f"tombstones: {total} entries instead of {seen}")


async def _check_seen(view: View, tell: Tell) -> None:
    """What was seen of a remote is there, and whatever is found by its uuid was seen."""
    async for key, value in _entries(view, "remote"):
        kind = decode_key(key)[0]
        if kind in _WAITING:
            continue
        is_uuid = kind == "u"
        if is_uuid and await view.find("remote", value) is None:
            tell(f"remote {_shown(key)}: leads to {_shown(value)}, which was not seen")
        if not is_uuid and await view.find("names", key) is None:
            tell(f"remote {_shown(key)}: was seen, and is gone")


async def _check_passed(view: View, tell: Tell) -> None:
    """What is to come holds its places; nothing of ours is in what was given away."""
    async for key, value in _entries(view, ADOPTING):
        if decode_key(key)[0] in _MARKS:
            continue
        adopted, name = decode_adopted(value), f"on its way {_shown(key)}"
        if await find_adopted_by_id(view, adopted.id) != adopted:
            tell(f"{name}: cannot be found by id")
        await _require_held(view, adopted.held, name, tell)
    if await view.find("moving", BEING_MOVED) is None:
        async for key, _ in _entries(view, CEDED):
            if await view.find("locations", key) != HOLDER:
                tell(f"place {_place(key)}: was given away, and is not kept free")


# --- reading ---------------------------------------------------------------------------------------


async def _require_held(view: View, held: Held, name: str, tell: Tell) -> None:
    for key in _place_keys(held):
        if await view.find("locations", key) != encode_id_key(held.id):
            tell(f"{name}: does not hold {_place(key)}")


def _place_keys(held: Held) -> list[bytes]:
    return [location_key(parse_place(text)) for text in (held.location, *held.claims) if text]


async def _load_page(view: View, entries: Entries) -> list[tuple[bytes, ObjRef, Held]]:
    """What has these names. Types of newer versions are left out."""
    refs = {key: ObjRef.unpack(value) for key, value in entries}
    loaded: dict[ObjId, Any] = {}
    for name, object_type in _TYPES.items():
        ids = [ref.id for ref in refs.values() if ref.type == name]
        loaded |= zip(ids, await view.load_many(object_type, ids) if ids else (), strict=True)
    found: list[tuple[bytes, ObjRef, Held]] = []
    for key, ref in refs.items():
        if (entity := loaded.get(ref.id)) is not None:
            held = Held(entity.id, getattr(entity, "location", ""), getattr(entity, "claims", ()))
            found.append((key, ref, held))
    return found


async def _dropped(view: View) -> AsyncIterator[DroppedEntity]:
    async for page in _pages(view, "dropped"):
        for each in await view.load_many(DROPPED, [ObjRef.unpack(value).id for _, value in page]):
            yield each


async def _entries(view: View, index: str, *, start: bytes = b"") -> AsyncIterator[tuple[bytes, bytes]]:
    async for page in _pages(view, index, start=start):
        for entry in page:
            yield entry


async def _pages(view: View, index: str, *, start: bytes = b"") -> AsyncIterator[Entries]:
    while page := await view.scan(index, start=start, limit=_PAGE):
        yield page
        start = after(page[-1][0])


def _shown(key: bytes) -> str:
    return " ".join(decode_key(key))


def _place(key: bytes) -> str:
    return "/".join(decode_key(key))
