"""Changes of a federated catalog that tests ask for, and keys to ask with."""

import json
import uuid
from typing import Any, NamedTuple

from msgspec import Raw, structs

from cynosure.api.idempotency import describe
from cynosure.auth.caller import Caller
from cynosure.auth.request_key import Peppers, RequestKey
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.create_table import CreateTable
from cynosure.catalog.operations.create_view import CreateView
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import CynosureError
from cynosure.federation.operations import FederatedOperations
from cynosure.iceberg.requirements import AssertRefSnapshotId, TableRequirement
from cynosure.iceberg.updates import decode_updates
from cynosure.iceberg.views import parse_view
from cynosure.storage.location import Location
from cynosure.testing.remote_samples import SCHEMA, version_of
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_realm import KEYRING
from tests.catalog.external import view_file
from tests.federation.seen_world import NS, Far, T
from tests.federation.writes.losing_remote import LosingRemote

STORED = frozenset({400, 404, 406, 409, 422})
SNAPSHOT = 4_242_424_242


class Passing(NamedTuple):
    """A federated catalog, its remote, and what changes both."""

    far: Far
    remote: LosingRemote
    writes: FederatedOperations


def passing(far: Far) -> Passing:
    assert isinstance(far.remote, LosingRemote)
    far.remote.home = far.catalog.base.text
    return Passing(far, far.remote, FederatedOperations(far.federation))


def creation(table: Identifier = T, **more: Any) -> CreateTable:
    return CreateTable(table.namespace, table.name, Raw(json.dumps(SCHEMA).encode()), **more)


def view_creation(name: Identifier, **more: Any) -> CreateView:
    version = Raw(json.dumps(version_of("SELECT 1 AS id")).encode())
    return CreateView(name, Raw(json.dumps(SCHEMA).encode()), version, **more)


async def put_view_file(here: Passing, **more: Any) -> str:
    """A metadata file of a view that both we and the remote can read; where it is."""
    file = await view_file(here.far.catalog, **more)
    found = await here.far.catalog.files.read(Location.parse(file))
    here.remote.view_files[file] = parse_view(found)
    return file


def change(*updates: Any, table: Identifier = T, requires: tuple[TableRequirement, ...] = ()) -> TableChange:
    return TableChange(table, requires, decode_updates(json.dumps(updates).encode()))


def setting(table: Identifier = T, **properties: str) -> TableChange:
    return change({"action": "set-properties", "updates": properties}, table=table)


def appending(location: str, *, table: Identifier = T, snapshot: int = SNAPSHOT) -> TableChange:
    """A commit of a snapshot, as an engine makes it."""
    added = {
        "snapshot-id": snapshot,
        "sequence-number": 1,
        "timestamp-ms": 1_767_225_660_000,
        "manifest-list": f"{location}/metadata/snap-{snapshot}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return change(
        {"action": "add-snapshot", "snapshot": added},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot},
        table=table,
        requires=(AssertRefSnapshotId("main", None),),
    )


class Keyed:
    """One request with an Idempotency-Key, attempted several times."""

    def __init__(self, caller: Caller = ROOT) -> None:
        self._caller = caller
        self._text = str(uuid.uuid4())
        self._hash = uuid.uuid4().hex * 2

    def first(self) -> Caller:
        return self._attempt(is_repeat=False)

    def again(self) -> Caller:
        """After the first attempt was given up."""
        return self._attempt(is_repeat=True)

    def _attempt(self, *, is_repeat: bool) -> Caller:
        key = RequestKey(
            self._text,
            key_hash=self._hash,
            payload_hash="ab" * 32,
            describe_refusal=_describe,
            peppers=Peppers(lambda: KEYRING),
            is_repeat=is_repeat,
        )
        return structs.replace(self._caller, key=key)


def _describe(error: CynosureError) -> bytes | None:
    answer = describe(error)
    return answer.pack() if answer.status in STORED else None


async def make_namespace(here: Passing) -> None:
    await here.writes.create_namespace(here.far.catalog, ROOT, NS, {})


async def make_table(here: Passing, table: Identifier = T, **more: Any) -> str:
    """A table, made through us; where it is."""
    if NS not in here.remote.namespaces:
        await make_namespace(here)
    await here.writes.create_table(here.far.catalog, ROOT, creation(table, **more))
    return here.remote.tables[table].metadata.location
