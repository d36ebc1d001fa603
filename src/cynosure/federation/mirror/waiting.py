"""Restrictions of what left its name: they wait for whatever comes there, and for where it went.

A remote drops and makes anew, or renames and puts another table in its place, without knowing that rows and
columns of a table are hidden here. So row filters and masks that are attached to a table or namespace do not
end with it, as its grants do. They wait in the index `remote`; the commit that takes it in attaches them:

    w a b t ─► policies      for the next table of this name
    x UUID  ─► policies      for this table, under whatever name it is seen again
    y a b   ─► policies      for the next namespace of this name
    z UUID a b ─► policies   of the namespace that this table was in, if it is seen again in another

Must not break: no commit gives a name to a table or namespace without taking what waits for it. What does not
fit a table's columns hides it, until the policy is attached again or detached. A policy that was dropped
waits no more. Nothing else ends an entry but that it is taken, and `forget_waiting`, which asks the remote.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from cynosure.catalog.attaching import mapping_change
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.names import Identifier, Namespace, path_of
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.attached import load_policy_by_id
from cynosure.catalog.policies.mappings import (
    MAPPINGS,
    POLICY_MAPPING,
    PolicyMapping,
    TargetKind,
    both_keys,
    load_mappings,
    target_prefix,
)
from cynosure.catalog.policies.placing import kind_of
from cynosure.catalog.policy_types import is_restriction
from cynosure.catalog.resolve import find_namespace
from cynosure.catalog.restrictions.types import (
    ensure_parser,
    find_current_ids,
    read_content,
    read_mapping_id,
)
from cynosure.catalog.targets import NamespaceTarget, TableTarget
from cynosure.common.errors import BadInput
from cynosure.federation.mirror.changing import Collected
from cynosure.federation.mirror.seen import INDEX
from cynosure.iceberg.schema import Schema
from cynosure.persistence.commit import View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import decode_key, encode_id_key, encode_key, prefix_of
from cynosure.persistence.listing import scan_all
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject


class Waiting(Struct, frozen=True, array_like=True):
    """A restriction without its table. Stored: new fields have defaults."""

    policy_id: ObjId
    attached_by: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    mapping_table: int = 0
    """Of its filter: another one of the name is not taken for it (`catalog.restrictions.types`)."""


class Left(Struct, frozen=True):
    """What waits in one entry, and for what."""

    kind: Literal["table", "namespace", "uuid"]
    path: tuple[str, ...]
    """A name; of a uuid, the namespace whose restrictions these are, or nothing when they are its own."""
    uuid: str
    policies: tuple[ObjId, ...]
    key: bytes
    value: bytes


async def scan_left(view: View, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    """Entries of what waits, from a key on."""
    found: list[tuple[bytes, bytes]] = []
    for prefix in map(prefix_of, (_FOR_NAME, _FOR_UUID, _FOR_NAMESPACE, _INHERITED)):
        if len(found) < limit and start[: len(prefix)] <= prefix:
            found += await view.scan(INDEX, prefix=prefix, start=start, limit=limit - len(found))
    return found


def read_left(key: bytes, value: bytes) -> Left:
    """An entry as a scan finds it."""
    letter, *path = decode_key(key)
    policies = tuple(each.policy_id for each in _DECODER.decode(value))
    if letter in (_FOR_UUID, _INHERITED):
        return Left("uuid", tuple(path[1:]), path[0], policies, key, value)
    return Left("table" if letter == _FOR_NAME else "namespace", tuple(path), "", policies, key, value)


async def find_policies(view: View, left: Left) -> list[Identifier]:
    """The names of the policies that wait there; those that were dropped wait no more."""
    found: list[Identifier] = []
    for each in left.policies:
        if await view.find("ids", encode_id_key(each)) is not None:
            found.append((await load_policy_by_id(view, each))[0])
    return found


async def leave_restrictions(
    view: View, table: Identifier, entity_id: ObjId, *, uuid: str = "", is_name_left: bool = True
) -> Changes:
    """What keeps the restrictions of a table that goes: for itself, and for the next of its name."""
    own, namespace = await _find_own(view, entity_id), table.namespace
    left = {_name_key(table): own} if is_name_left else {}
    if uuid:
        inherited = await find_inherited(view, namespace)
        left |= {_uuid_key(uuid): own, encode_key(_INHERITED, uuid, *namespace): inherited}
    return {
        INDEX: {key: _encode([*await _find_waiting(view, key), *more]) for key, more in left.items() if more}
    }


async def take_restrictions(
    catalog: OpenCatalog,
    view: View,
    table: Identifier,
    uuid: str,
    entity_id: ObjId,
    schema: Schema,
    *,
    replaced: Iterable[ObjId] = (),
    inherited: Iterable[Waiting] = (),
) -> Collected:
    """What attaches to a table all that waits for it, and what the tables had that it replaces.

    `inherited`: what it had of the namespaces that it comes from.
    """
    taken, waiting = Collected(), [own for each in replaced for own in await _find_own(view, each)]
    # What is replaced has left its restrictions to the name in this very change.
    is_left = bool(waiting)
    for key in (_name_key(table), _uuid_key(uuid)):
        found = await _find_waiting(view, key)
        waiting += found
        if found or is_left:
            merge(taken.changes, {INDEX: {key: None}})
    has = {each.policy_id for each in await _find_own(view, entity_id)}
    left = {each.policy_id: each for each in waiting if each.policy_id not in has}
    await _attach_all(catalog, view, catalog.table(table), entity_id, left.values(), taken, schema)
    brought = list(inherited)
    for key, value in await scan_all(view, INDEX, prefix_of(_INHERITED, uuid)):
        merge(taken.changes, {INDEX: {key: None}})
        _, *namespace = path_of(key)
        brought += [] if tuple(namespace) == table.namespace else _DECODER.decode(value)
    has |= left.keys() | {each.policy_id for each in await _find_coming(view, table.namespace)}
    more = {each.policy_id: each for each in brought if each.policy_id not in has}
    # Without a schema: as on a namespace, columns count by their names.
    await _attach_all(catalog, view, catalog.table(table), entity_id, more.values(), taken)
    return taken


async def find_inherited(view: View, namespace: Namespace) -> list[Waiting]:
    """The restrictions that are attached to a namespace, or to one above it."""
    found: list[Waiting] = []
    for depth in range(1, len(namespace) + 1):
        entity = await find_namespace(view, namespace[:depth])
        found += [] if entity is None else await _find_own(view, entity.id)
    return found


async def end_inherited(view: View, uuid: str) -> Changes:
    """What has the restrictions of namespaces that a table was in wait for it no more."""
    return {INDEX: {key: None for key, _ in await scan_all(view, INDEX, prefix_of(_INHERITED, uuid))}}


async def _find_coming(view: View, namespace: Namespace) -> list[Waiting]:
    """Those, and what waits for namespaces that are made by this very change."""
    found = await find_inherited(view, namespace)
    for depth in range(1, len(namespace) + 1):
        found += await _find_waiting(view, _namespace_key(namespace[:depth]))
    return found


async def leave_to_namespace(view: View, namespace: Namespace, entity_id: ObjId) -> Changes:
    """What keeps the restrictions of a namespace that goes, for the next of its name."""
    own, key = await _find_own(view, entity_id), _namespace_key(namespace)
    return {INDEX: {key: _encode(own)}} if own else {}


async def take_to_namespace(
    catalog: OpenCatalog, view: View, namespace: Namespace, entity_id: ObjId
) -> Collected:
    """What attaches to a namespace all that waits for it."""
    taken, key = Collected(), _namespace_key(namespace)
    waiting = await _find_waiting(view, key)
    if waiting:
        merge(taken.changes, {INDEX: {key: None}})
        await _attach_all(catalog, view, catalog.namespace(namespace), entity_id, waiting, taken)
    return taken


async def find_awaited_tables(view: View, namespace: Namespace) -> list[Identifier]:
    """Tables in a namespace, or below it, that are not there and have restrictions waiting for them."""
    found = [path_of(key) for key, _ in await scan_all(view, INDEX, prefix_of(_FOR_NAME, *namespace))]
    return [Identifier(path[:-1], path[-1]) for path in found]


async def find_awaited_namespaces(view: View, parent: Namespace) -> list[Namespace]:
    """The same of namespaces."""
    return [path_of(key) for key, _ in await scan_all(view, INDEX, prefix_of(_FOR_NAMESPACE, *parent))]


async def pass_on_to_table(
    view: View, source: Identifier, entity_id: ObjId | None, heir: Identifier
) -> Changes:
    """What has all that hides rows or columns of one name wait for another one, too."""
    return await _pass_on(view, _name_key(source), entity_id, _name_key(heir))


async def pass_on_to_namespace(
    view: View, source: Namespace, entity_id: ObjId | None, heir: Namespace
) -> Changes:
    """The same for what is attached to a namespace itself."""
    return await _pass_on(view, _namespace_key(source), entity_id, _namespace_key(heir))


async def _pass_on(view: View, source: bytes, entity_id: ObjId | None, heir: bytes) -> Changes:
    own = [] if entity_id is None else await _find_own(view, entity_id)
    passed = [*await _find_waiting(view, source), *own]
    return {INDEX: {heir: _encode([*await _find_waiting(view, heir), *passed])}} if passed else {}


async def _attach_all(
    catalog: OpenCatalog,
    view: View,
    target: TableTarget | NamespaceTarget,
    entity_id: ObjId,
    waiting: Iterable[Waiting],
    taken: Collected,
    schema: Schema | None = None,
) -> None:
    """Attach what waits; but for policies that were dropped meanwhile."""
    for each in waiting:
        if await view.find("ids", encode_id_key(each.policy_id)) is None:
            continue
        path, policy = await load_policy_by_id(view, each.policy_id)
        await ensure_parser()
        ids = None if schema is None else _find_ids(policy, schema)
        new = _make_mapping(catalog, kind_of(target), entity_id, each, ids)
        value = ObjRef(new.id, POLICY_MAPPING.name).pack()
        merge(taken.changes, {MAPPINGS: dict.fromkeys(both_keys(policy.id, entity_id), value)})
        taken.objects.append(new)
        taken.feed.append(mapping_change("policy-attached", path, policy, target, entity_id, after=value))


def _make_mapping(
    catalog: OpenCatalog,
    kind: TargetKind,
    entity_id: ObjId,
    waiting: Waiting,
    ids: dict[str, tuple[int, ...]] | None,
) -> NewObject:
    persistence = catalog.shared.persistence
    mapping = PolicyMapping(
        policy_id=waiting.policy_id,
        target_id=entity_id,
        target_kind=kind,
        attached_us=persistence.clock.now_us(),
        attached_by=waiting.attached_by,
        parameters=waiting.parameters,
        detail=raw_detail({"ids": ids, "mapping": waiting.mapping_table}),
    )
    return NewObject(POLICY_MAPPING, persistence.ids.next(), mapping)


def _find_ids(policy: PolicyEntity, schema: Schema) -> dict[str, tuple[int, ...]]:
    """The fields that the policy is about. None of them, when it does not fit: then it hides the table."""
    content = read_content(policy.type, policy.content)
    try:
        return {} if content is None else find_current_ids(content, schema)
    except BadInput:
        return {}


async def _find_own(view: View, entity_id: ObjId) -> list[Waiting]:
    """The restrictions that are attached to a table or namespace itself."""
    found: list[Waiting] = []
    for each in await load_mappings(view, target_prefix(entity_id)):
        _, policy = await load_policy_by_id(view, each.policy_id)
        if is_restriction(policy.type):
            mapping_table = read_mapping_id(each.detail)
            found.append(Waiting(policy.id, each.attached_by, each.parameters, mapping_table))
    return found


async def _find_waiting(view: View, key: bytes) -> list[Waiting]:
    value = await view.find(INDEX, key)
    return [] if value is None else _DECODER.decode(value)


def _encode(waiting: Iterable[Waiting]) -> bytes:
    """Each policy once, as it was attached last."""
    return _ENCODER.encode([*{each.policy_id: each for each in waiting}.values()])


def _name_key(table: Identifier) -> bytes:
    return encode_key(_FOR_NAME, *table.namespace, table.name)


def _namespace_key(namespace: Namespace) -> bytes:
    return encode_key(_FOR_NAMESPACE, *namespace)


def _uuid_key(uuid: str) -> bytes:
    return encode_key(_FOR_UUID, uuid)


_FOR_NAME: Final = "w"
_FOR_UUID: Final = "x"
_FOR_NAMESPACE: Final = "y"
_INHERITED: Final = "z"
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[Waiting])
