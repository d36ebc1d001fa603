"""One value of every stored type, for the golden bytes; those of other rooms are in files of their own.

A maintainer must not break: these values never change. A new field gets a new file of another version
beside the old one, and both stay readable.
"""

from typing import Any, NamedTuple

from pyroaring import BitMap64

from cynosure.persistence.commit import COMMIT, Change, Commit, CommitRecord, RequestRecord
from cynosure.persistence.commit.key_log import KEY_RUN, KeyLog, KeyRun, RunRef, short_hash
from cynosure.persistence.commit.records import StoredIndex, raw_detail
from cynosure.persistence.gc.doomed import DOOMED, Doomed, DoomedScope
from cynosure.persistence.gc.pins import PIN, Pin
from cynosure.persistence.ids import NODE_LEASE, Owner
from cynosure.persistence.ids.node_lease import NodeLeaseRow
from cynosure.persistence.index import encode_key
from cynosure.persistence.index.node import Inner, Leaf
from cynosure.persistence.index_nodes import INDEX_NODE
from cynosure.persistence.objects import ObjectType, ObjRef
from cynosure.persistence.scopes import REALM_ENTRY, RealmEntry
from cynosure.persistence.spi import CatalogId, ObjId, RealmId
from cynosure.persistence.store_info import STORE_INFO, StoreInfo
from cynosure.persistence.tasks import TASK, RunRecord
from cynosure.persistence.tasks.row import TaskRow, succeeded

from .auth_values import AUTH_VALUES
from .catalog_values import CATALOG_VALUES
from .delegation_values import DELEGATION_VALUES
from .idempotency_values import IDEMPOTENCY_VALUES

_AT_US = 1_767_225_600_000_000
_OWNER = Owner(host="catalog-1", pid=4711, started_us=_AT_US)


class Golden(NamedTuple):
    """A stored type, a value of it, and what of the decoded value is compared."""

    type: ObjectType[Any]
    value: Any
    read: Any = lambda value: value


def _commit_parts(commit: Commit) -> Any:
    return commit.record


def _node_parts(node: Any) -> Any:
    return (
        node.level,
        list(node.items()) if node.level == 0 else (list(node.separators), list(node.children)),
    )


_KEY_LOG = KeyLog((RunRef(ObjId(1003), 2, _AT_US),), b"").with_entries([short_hash("ab12")], ObjId(1004))
_COMMIT = Commit(
    CommitRecord(
        sequence=2,
        time_us=_AT_US,
        parents=(ObjId(1001),),
        indexes={"names": StoredIndex(holds="objects", data=b"index")},
        requests=(
            RequestRecord(
                principal="alice",
                operation="create-table",
                request_id="r-1",
                key_hash="ab12",
                changes=(
                    Change(
                        kind="created",
                        index="names",
                        key=encode_key("ns", "t"),
                        after=ObjRef(ObjId(7), "table").pack(),
                        detail=raw_detail({"version": 1}),
                    ),
                ),
                receipt=b"receipt",
            ),
        ),
        key_log=_KEY_LOG.pack(),
    )
)
_TASK = succeeded(
    TaskRow(
        name="store.gc",
        holder="00112233445566778899aabb",
        owner=_OWNER,
        lease_until_us=_AT_US + 60_000_000,
        lease_s=60.0,
        attempt=1,
        started_us=_AT_US,
        progress=b"half",
    ),
    "deleted 5",
    _AT_US + 1_000_000,
    next_due_us=_AT_US + 86_400_000_000,
)

GOLDEN = {
    "commit": Golden(COMMIT, _COMMIT, _commit_parts),
    "index-node-leaf": Golden(INDEX_NODE, Leaf.of([(b"a", b"12345678x"), (b"b", b"12345679x")]), _node_parts),
    "index-node-inner": Golden(INDEX_NODE, Inner.of(1, [b"m"], [5, 6]), _node_parts),
    "key-run": Golden(
        KEY_RUN,
        KeyRun.of(KeyLog.EMPTY.with_entries([short_hash("cd34"), short_hash("ab12")], ObjId(1001)).tail),
        lambda run: (run.data, run.find(int.from_bytes(short_hash("ab12"), "big"))),
    ),
    "realm": Golden(
        REALM_ENTRY, RealmEntry(name="acme", created_us=_AT_US, properties={"owner": "data team"})
    ),
    "pin": Golden(PIN, Pin(commit=ObjId(1002), owner="export 7", until_us=_AT_US + 3_600_000_000)),
    "gc-doomed": Golden(
        DOOMED,
        Doomed(
            scopes=(
                DoomedScope(
                    realm=RealmId("default"),
                    catalog=CatalogId("c"),
                    type="table",
                    ids=BitMap64([3, 1 << 40, (1 << 63) - 1]).serialize(),
                ),
            )
        ),
        lambda doomed: list(doomed.batches(100)),
    ),
    "store-info": Golden(
        STORE_INFO, StoreInfo(id="0" * 32, layout=1, created_us=_AT_US, page_key=bytes(range(32)))
    ),
    "task": Golden(TASK, _TASK, lambda row: (row, row.runs())),
    "node-lease": Golden(
        NODE_LEASE,
        NodeLeaseRow(
            holder="00112233445566778899aabb",
            leased_until_us=_AT_US + 60_000_000,
            owner=_OWNER,
            granted_us=_AT_US,
            renewed_us=_AT_US,
        ),
    ),
    **{
        name: Golden(*value)
        for values in (CATALOG_VALUES, AUTH_VALUES, DELEGATION_VALUES, IDEMPOTENCY_VALUES)
        for name, value in values.items()
    },
}
RUNS = [
    RunRecord(
        started_us=_AT_US,
        finished_us=_AT_US + 1_000_000,
        attempt=1,
        owner=_OWNER,
        outcome="succeeded",
        text="deleted 5",
    )
]
