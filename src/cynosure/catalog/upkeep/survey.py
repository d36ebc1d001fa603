"""Which maintenance policies count for which tables.

Must not break: a namespace that no policy counts for costs one look, however many tables it has; and of
two policies of one type the nearer one counts, as everywhere (`policies/applicable.py`).
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.names import Identifier, Namespace, path_of, tables_prefix
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.applicable import choose_applicable
from cynosure.catalog.policies.attached import Attached, load_attached, load_attached_to
from cynosure.catalog.policies.maintenance_config import POLICY_TASKS
from cynosure.catalog.policies.mappings import MAPPINGS, first_id, has_mappings
from cynosure.catalog.policy_types import POLICY_TYPES
from cynosure.catalog.restrictions.in_force import restricting
from cynosure.catalog.upkeep.rules import Rule, read_rule
from cynosure.persistence.commit import State
from cynosure.persistence.index import after, encode_id_key
from cynosure.persistence.index.keys import end_of_prefix
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

MOST_TABLES: Final = 10_000
"""Tables with policies that are looked at in one round."""
_CHUNK: Final = 1_000
_TABLES: Final = b"t"
"""What the keys of all tables in `names` begin with."""


class Surveyed(Struct, frozen=True):
    """A table that a policy may count for."""

    path: Identifier
    ref: ObjRef
    id: ObjId
    created_us: int
    snapshot_id: int | None
    """`None` also for a table of which only the metadata file is known."""
    is_restricted: bool = False
    """Whether anyone is shown only a part of it."""


class Work(Struct, frozen=True):
    """One policy that counts for one table."""

    table: Surveyed
    attached: Attached
    rule: Rule

    @property
    def first_due_us(self) -> int:
        """When it is due if nothing was done yet."""
        return self.rule.schedule.first_us(max(self.attached.mapping.attached_us, self.table.created_us))


class Survey(Struct, frozen=True):
    """What counts for what."""

    works: Sequence[Work]
    next_key: bytes | None
    """Where the tables begin that were too many for this time."""


async def survey(
    catalog: OpenCatalog,
    state: State,
    *,
    start: bytes = b"",
    below: Namespace = (),
    most: int = MOST_TABLES,
) -> Survey:
    """All policies of maintenance that count for tables below a namespace, from a key of `names` on.

    It ends with the namespace, or part of a large one, that has the `most`th table.
    """
    if not await has_mappings(state):
        return Survey((), None)
    own = await _find_own(state)
    above = _Above(catalog, state)
    works: list[Work] = []
    tables = 0
    at: bytes | None = start
    while at is not None:
        entries, at = await _next_entries(state, above, sorted(own), at, below)
        chosen = []
        for key, value in entries:
            *namespace, name = path_of(key)
            found = await above.find(tuple(namespace))
            chosen.append((Identifier(tuple(namespace), name), ObjRef.unpack(value), found, own.get(key)))
        works += await _works_of(catalog, state, chosen)
        tables += len(chosen)
        if tables >= most:
            break
        # A catalog of a million tables must not hold up everyone else.
        await asyncio.sleep(0)
    return Survey(works, at)


async def _next_entries(
    state: State, above: "_Above", own: Sequence[bytes], start: bytes, below: Namespace
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    """Tables of the next namespace that something may count for, and where to go on."""
    first = await state.scan("names", prefix=_TABLES, start=start, limit=1)
    if not first:
        return [], None
    namespace = path_of(first[0][0])[:-1]
    prefix = tables_prefix(namespace)
    end = end_of_prefix(prefix)
    if namespace[: len(below)] != below:
        return [], end
    if above.orders(await above.find(namespace)):
        entries = await state.scan("names", prefix=prefix, start=start, limit=_CHUNK)
        return entries, after(entries[-1][0]) if len(entries) == _CHUNK else end
    # Nothing is attached above: only those tables are looked at that something is attached to themselves.
    keys = [key for key in own if key.startswith(prefix) and key >= start]
    found = [(key, await state.find("names", key)) for key in keys]
    return [(key, value) for key, value in found if value is not None], end


async def survey_table(state: State, path: Identifier, ref: ObjRef) -> Surveyed:
    """One table, whatever counts for it."""
    return (await _load_tables(state, [(path, ref)]))[0]


class _Above:
    """What is attached above tables, per namespace."""

    def __init__(self, catalog: OpenCatalog, state: State) -> None:
        self._catalog = catalog
        self._state = state
        self._known: dict[Namespace, tuple[Attached, ...]] = {}

    async def find(self, namespace: Namespace) -> tuple[Attached, ...]:
        known = self._known.get(namespace)
        if known is None:
            known = await load_attached(self._state, self._catalog.namespace(namespace))
            self._known[namespace] = known
        return known

    def orders(self, attached: Sequence[Attached]) -> bool:
        """Whether one of these policies is of maintenance."""
        return any(each.policy.type in POLICY_TASKS for each in attached)


async def _find_own(state: State) -> dict[bytes, ObjId]:
    """Tables that something is attached to themselves: key in `names`, and id."""
    targets = {first_id(key) for key, _ in await scan_all(state, MAPPINGS, b"t")}
    found = {target: await state.find("ids", encode_id_key(target)) for target in targets if target}
    return {key: target for target, key in found.items() if key is not None and key.startswith(b"t")}


async def _works_of(
    catalog: OpenCatalog,
    state: State,
    chosen: Sequence[tuple[Identifier, ObjRef, Sequence[Attached], ObjId | None]],
) -> list[Work]:
    default = catalog.shared.delegation.maintenance.default_schedule
    tables = await _load_tables(state, [(path, ref) for path, ref, _, _ in chosen])
    works: list[Work] = []
    rules: dict[tuple[ObjId, int], Rule] = {}
    for table, (path, _, above, own_id) in zip(tables, chosen, strict=True):
        depth = len(path.namespace) + 1
        own: Sequence[Attached] = ()
        if own_id is not None:
            found = await load_attached_to(state, own_id, ("table", str(path)))
            own = [replace(each, depth=depth) for each in found]
        attached = (*above, *own)
        seen = replace(table, is_restricted=bool(restricting(attached)))
        for each in choose_applicable(attached, POLICY_TYPES, depth=depth):
            policy = each.attached.policy
            if policy.type not in POLICY_TASKS:
                continue
            key = (policy.id, policy.version)
            if key not in rules:
                rules[key] = read_rule(policy.type, policy.content, default_schedule=default)
            works.append(Work(seen, each.attached, rules[key]))
    return works


async def _load_tables(state: State, chosen: Sequence[tuple[Identifier, ObjRef]]) -> list[Surveyed]:
    pointers = [ref.id for _, ref in chosen if ref.type == POINTER.name]
    states = [ref.id for _, ref in chosen if ref.type != POINTER.name]
    found: dict[ObjId, tuple[ObjId, int, int | None]] = {}
    if pointers:
        for id_, pointer in zip(pointers, await state.load_many(POINTER, pointers), strict=True):
            found[id_] = (pointer.id, pointer.created_us, None)
    if states:
        for id_, table in zip(states, await state.load_many(TABLE, states), strict=True):
            found[id_] = (table.id, table.created_us, table.current_snapshot_id)
    return [Surveyed(path, ref, *found[ref.id]) for path, ref in chosen]
