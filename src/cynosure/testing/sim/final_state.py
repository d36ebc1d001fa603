"""What the database holds in the end: the state the chain says, all of it, and nothing else.

Must not break: rows are followed here without `reach.py`, which garbage collection itself relies on.
"""

from collections.abc import Iterable

from cynosure.persistence import parts
from cynosure.persistence.backends.memory import MemoryBackend, MemoryStore
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import COMMIT, State
from cynosure.persistence.commit.key_log import KEY_RUN
from cynosure.persistence.gc.doomed import DOOMED
from cynosure.persistence.gc.pins import PIN
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.index import Index, Node, check
from cynosure.persistence.index.node import Inner
from cynosure.persistence.index_nodes import INDEX_NODE
from cynosure.persistence.objects import ObjRef, open_envelope, unseal
from cynosure.persistence.spi import ObjId, ObjKey, RefKey
from cynosure.persistence.store import Store
from cynosure.testing.sim.history import BrokenRule
from cynosure.testing.sim.operations import ENTITY
from cynosure.testing.sim.replay import Chain
from cynosure.testing.sim.server import INDEXES, TYPES, SimServer

_ALL = 1_000_000


async def check_final_state(database: MemoryStore, key: RefKey, chain: Chain, auditor: SimServer) -> None:
    """The head's state as the model has it, and every row that it, and only it, needs."""
    ref = database.refs[key]
    store = _plain_store(database, key, auditor)
    report = await check_reference(store, ref)
    if report.problems:
        raise BrokenRule("everything reachable is there", report.problems[0])
    if not ref.head:
        return
    state = await State.load(store, ref.head)
    for name in INDEXES:
        await check(state.nodes, state.commit.index(name))
    await _check_entries(state, chain)


async def _check_entries(state: State, chain: Chain) -> None:
    things = chain.by_commit[state.commit_id].things
    names = await state.scan("names", limit=_ALL)
    entities = await state.load_many(ENTITY, [ObjRef.unpack(value).id for _, value in names])
    found = {each.name: (each.location, each.counter) for each in entities}
    expected = {name: (thing.location, thing.counter) for name, thing in things.items()}
    if found != expected or [key.decode() for key, _ in names] != sorted(expected):
        raise BrokenRule("the final state is that of the chain", f"{found}, not {expected}")
    ids = {int(key): value.decode() for key, value in await state.scan("ids", limit=_ALL)}
    if ids != {each.stable_id: each.name for each in entities}:
        raise BrokenRule("the indexes agree", f"ids {ids}")
    locations = {key.decode(): int(value) for key, value in await state.scan("locations", limit=_ALL)}
    if locations != {each.location: each.stable_id for each in entities}:
        raise BrokenRule("the indexes agree", f"locations {locations}")


def check_rows(database: MemoryStore, *, since_us: int) -> None:
    """After the last collection: what nothing leads to is gone, and pins that ran out as well."""
    needed: set[ObjKey] = set()
    for ref in database.refs.values():
        for head in (ref.head, *ref.recent):
            if head:
                _follow(database, ObjKey(ref.key.realm, ref.key.catalog, COMMIT.name, head), needed)
    for key, row in database.rows.items():
        object_type = TYPES.find(key.type)
        if object_type is PIN:
            raise BrokenRule("garbage is collected", f"pin {key.id}")
        if object_type is None or object_type.is_mutable or key in needed:
            continue
        if object_type is DOOMED and row.created_us >= since_us:
            continue  # What the last collection decided is for the next one to delete.
        raise BrokenRule("garbage is collected", f"{key.type} {key.id}")


def _follow(database: MemoryStore, key: ObjKey, needed: set[ObjKey]) -> None:
    if key in needed:
        return
    needed.add(key)
    row = database.rows.get(key)
    if row is None:
        raise BrokenRule("everything reachable is there", f"{key.type} {key.id}")
    if part_keys := parts.part_keys(row):
        needed.update(part_keys)
        row = parts.join(row, [database.rows.get(part) for part in part_keys])
    if key.type == COMMIT.name:
        commit = unseal(COMMIT, key, row.blob)[0]
        for name, stored in commit.record.indexes.items():
            _follow_index(database, key, commit.index(name), stored.holds == "objects", needed)
        for run in commit.key_log.runs:
            _follow(database, key._replace(type=KEY_RUN.name, id=run.id), needed)
    for ref in open_envelope(key, row.blob).refs:
        _follow(database, key._replace(type=ref.type, id=ref.id), needed)


def _follow_index(
    database: MemoryStore, key: ObjKey, index: Index, holds_objects: bool, needed: set[ObjKey]
) -> None:
    values: list[bytes] = [value for value in index.buffer.entries.values() if value is not None]
    pending: list[Node] = [index.root]
    while pending:
        node = pending.pop()
        if not isinstance(node, Inner):
            values += node.values.to_list()
            continue
        for child in node.children:
            child_key = key._replace(type=INDEX_NODE.name, id=ObjId(child))
            row = database.rows.get(child_key)
            if row is None:
                raise BrokenRule("everything reachable is there", f"index node {child}")
            needed.add(child_key)
            if part_keys := parts.part_keys(row):
                needed.update(part_keys)
                row = parts.join(row, [database.rows.get(part) for part in part_keys])
            pending.append(unseal(INDEX_NODE, child_key, row.blob)[0])
    if holds_objects:
        for each in _objects(values):
            _follow(database, key._replace(type=each.type, id=each.id), needed)


def _objects(values: Iterable[bytes]) -> list[ObjRef]:
    return [ObjRef.unpack(value) for value in values]


def _plain_store(database: MemoryStore, key: RefKey, auditor: SimServer) -> Store:
    """Straight to the database, and nothing remembered."""
    backend = MemoryBackend(database, row_bytes=auditor.weather.row_bytes)
    cache = ObjectCache(0, auditor.clock)
    return Store(backend, cache, auditor.clock, auditor.rng, realm=key.realm, catalog=key.catalog)
