"""What a trusted service ran for somebody is kept once, and nobody else is heard."""

import pytest
from msgspec.structs import replace

from cynosure.auth.audit.events import to_event
from cynosure.auth.audit.queries import MAX_SQL_BYTES, MAX_TABLES, QueryLog, RanQuery
from cynosure.auth.audit.read import EventFilter
from cynosure.auth.caller import Caller, Identity, operator_caller
from cynosure.common.errors import Forbidden
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import ObjId

from .realm import Realm

pytestmark = pytest.mark.anyio

ACTING = Identity(ObjId(7), 1, actor_id=ObjId(9), actor_credential=1)
ANN = Caller("ann", request_id="r1", identity=ACTING, roles=("readers",), actor="cynosure-gateway")
QUERY = RanQuery(
    statement_id="s1",
    outcome="FINISHED",
    sql="SELECT * FROM lake.eu.orders WHERE id = ?",
    tables=("lake.eu.orders",),
    policies=("gov.own-region",),
    rows=3,
    bytes=1_000,
    elapsed_ms=25,
    engine="local",
    reason="below the threshold",
)


@pytest.fixture
def queries(persistence: Persistence) -> QueryLog:
    return QueryLog(persistence)


async def test_a_statement_is_told_with_who_asked_and_through_whom(realm: Realm, queries: QueryLog) -> None:
    await queries.record(ANN, QUERY)

    (stored,) = await realm.list_events()
    event = to_event("default", 1, stored)
    assert (event.kind, event.operation, event.decision) == ("query", "query", "allowed")
    assert (event.principal, event.actor, event.roles) == ("ann", "cynosure-gateway", ("readers",))
    assert event.catalog == "lake"
    assert [(each.kind, each.name) for each in event.targets] == [
        ("table", "eu.orders"),
        ("policy", "gov.own-region"),
    ]
    assert event.details == {
        "statement-id": "s1",
        "outcome": "FINISHED",
        "engine": "local",
        "engine-reason": "below the threshold",
        "rows": "3",
        "bytes": "1000",
        "elapsed-ms": "25",
        "sql": QUERY.sql,
    }


async def test_the_same_statement_is_told_once_and_that_of_another_service_beside_it(
    realm: Realm, queries: QueryLog
) -> None:
    other = replace(ANN, identity=replace(ACTING, actor_id=ObjId(10)), actor="other")
    for caller in (ANN, ANN, other):
        await queries.record(caller, QUERY)
    await queries.record(ANN, replace(QUERY, statement_id="s2"))

    events = await realm.list_events()
    told = [(each.actor, each.details["statement-id"]) for each in events]
    assert told == [("cynosure-gateway", "s1"), ("other", "s1"), ("cynosure-gateway", "s2")]


async def test_two_who_call_their_statements_the_same_are_both_told(realm: Realm, queries: QueryLog) -> None:
    bob = replace(ANN, principal="bob", identity=replace(ACTING, principal_id=ObjId(8)))
    for caller in (ANN, bob):
        await queries.record(caller, QUERY)

    assert [each.principal for each in await realm.list_events()] == ["ann", "bob"]


@pytest.mark.parametrize(
    "caller",
    [
        replace(ANN, identity=Identity(ObjId(7), 1)),
        replace(ANN, identity=None),
        operator_caller(),
    ],
    ids=["acts itself", "nobody", "the operator"],
)
async def test_nobody_else_is_heard(caller: Caller, realm: Realm, queries: QueryLog) -> None:
    with pytest.raises(Forbidden):
        await queries.record(caller, QUERY)

    assert await realm.list_events() == []


async def test_what_is_long_is_cut_and_counted(realm: Realm, queries: QueryLog) -> None:
    tables = tuple(f"lake{at % 2}.ns.t{at}" for at in range(MAX_TABLES + 5))

    await queries.record(ANN, replace(QUERY, sql="é" * MAX_SQL_BYTES, tables=tables, error="x" * 5_000))

    (event,) = await realm.list_events()
    assert len(event.details["sql"].encode()) <= MAX_SQL_BYTES
    assert event.details["sql"].endswith("é…")
    assert len(event.details["error"]) <= 1_000
    assert (len(event.targets), event.targets_omitted) == (MAX_TABLES + 1, 5)
    assert event.catalog == ""
    for name, is_told in {"lake0": True, "lake1": True, "lake2": False}.items():
        assert EventFilter(catalog=name).passes(event) is is_told
    assert EventFilter(target="ns.t1", principal="cynosure-gateway").passes(event)
