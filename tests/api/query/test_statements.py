"""The routes of the query API over statements that answer what the test has written."""

import httpx
import pyarrow as pa
import pytest

from cynosure.api.query.pages import wants_arrow
from cynosure.api.query.wire import BASE
from cynosure.common.errors import Unavailable
from cynosure.query.errors import (
    DeadlinePassed,
    EngineUnavailable,
    NoSuchRelation,
    NotAllowed,
    NotReadable,
    OutOfMemory,
    PolicyHides,
    QueryFailed,
    QueueFull,
    SqlError,
)
from cynosure.testing.scripted_statements import Script, ScriptedStatements

pytestmark = pytest.mark.anyio

ARROW = "application/vnd.apache.arrow.stream"
ID = "0191e0a0-1111-7111-8111-111111111111"


async def test_a_statement_is_sent_looked_at_and_fetched_page_by_page(
    http: httpx.AsyncClient, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT a FROM t"] = Script.of(
        pa.table({"a": [1, 2], "b": ["x", None]}), pa.table({"a": [3], "b": ["y"]})
    )

    sent = await http.post(f"{BASE}/statements", json={"sql": "SELECT a FROM t", "wait": 1})

    assert sent.status_code == 200
    told = sent.json()
    assert told["state"] == "FINISHED"
    assert told["columns"] == [{"name": "a", "type": "bigint"}, {"name": "b", "type": "string"}]
    assert (told["engine"], told["reason"], told["tables"], told["policies"]) == (
        "local",
        "no cluster",
        ["lake.ns.t"],
        ["ns.hide"],
    )
    assert told["progress"] == {
        "fragments": 2,
        "fragments-done": 1,
        "rows-scanned": 10,
        "bytes-scanned": 1000,
        "bytes-total": 2000,
    }
    assert told["created-at"] == "2026-01-01T00:00:00Z"
    assert sent.headers["location"] == f"/api/query/v1/statements/{told['id']}"
    assert (await http.get(f"{BASE}/statements/{told['id']}")).json() == told
    first = await http.get(told["results"], params={"wait": "1"})
    assert first.json() == {
        "columns": told["columns"],
        "rows": [[1, "x"], [2, None]],
        "next": f"/api/query/v1/statements/{told['id']}/results/2",
    }
    assert first.headers["cache-control"] == "no-store"
    last = await http.get(first.json()["next"])
    assert (last.json()["rows"], last.json()["next"]) == ([[3, "y"]], None)
    assert [each["id"] for each in (await http.get(f"{BASE}/statements")).json()["statements"]] == [
        told["id"]
    ]


async def test_pages_come_as_arrow_to_who_asks_for_it(
    http: httpx.AsyncClient, statements: ScriptedStatements
) -> None:
    tables = [pa.table({"a": pa.array([1, None], pa.int32())}), pa.table({"a": pa.array([], pa.int32())})]
    statements.scripts["SELECT 1"] = Script.of(*tables)
    sent = (await http.post(f"{BASE}/statements", json={"sql": "SELECT 1"})).json()

    first = await http.get(sent["results"], headers={"Accept": ARROW})
    last = await http.get(first.links["next"]["url"], headers={"Accept": ARROW})

    assert first.headers["content-type"] == ARROW
    assert pa.ipc.open_stream(first.content).read_all() == tables[0]
    assert pa.ipc.open_stream(last.content).read_all() == tables[1]
    assert "link" not in last.headers


@pytest.mark.parametrize(
    ("accept", "is_arrow"),
    [
        (None, False),
        ("*/*", False),
        ("application/json", False),
        (ARROW, True),
        (f"application/json, {ARROW}", False),
        (f"{ARROW}; q=0.9, application/json", True),
        ("APPLICATION/VND.APACHE.ARROW.STREAM", True),
    ],
)
def test_arrow_is_sent_only_where_it_is_named_first(accept: str | None, is_arrow: bool) -> None:
    assert wants_arrow(accept) is is_arrow


async def test_what_runs_is_202_until_it_is_ended(
    http: httpx.AsyncClient, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT slow"] = Script.of(pa.table({"a": [1]}))
    statements.scripts["SELECT slow"].is_held = True
    sent = (await http.post(f"{BASE}/statements", json={"sql": "SELECT slow"})).json()

    waited = await http.get(sent["results"], params={"wait": "0.01"})
    ended = await http.delete(f"{BASE}/statements/{sent['id']}")
    again = await http.delete(f"{BASE}/statements/{sent['id']}")

    assert (waited.status_code, waited.json()["state"]) == (202, "RUNNING")
    assert (ended.status_code, ended.json()["state"], again.json()["state"]) == (200, "CANCELED", "CANCELED")
    assert ended.json()["error"]["type"] == "QueryCanceledException"


async def test_a_statement_sent_twice_under_one_id_is_one(
    http: httpx.AsyncClient, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}))
    body = {
        "sql": "SELECT 1",
        "statement-id": ID.upper(),
        "catalog": "lake",
        "namespace": "a.b",
        "timeout": "PT2M",
        "parameters": {"n": {"type": "DATE", "value": "2026-01-31"}},
    }

    first, second = [(await http.post(f"{BASE}/statements", json=body)).json()["id"] for _ in range(2)]

    assert first == second == ID
    [request] = statements.requests
    assert (request.catalog, request.namespace, request.timeout_s) == ("lake", ("a", "b"), 120.0)
    assert request.parameters == {"n": {"type": "DATE", "value": "2026-01-31"}}


async def test_a_statement_of_somebody_else_does_not_exist(
    http: httpx.AsyncClient, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}))
    sent = (await http.post(f"{BASE}/statements", json={"sql": "SELECT 1"})).json()
    others = [
        {"Authorization": "Bearer token-of-bob"},
        {"Authorization": "Bearer token-of-alice", "Polaris-Realm": "other"},
    ]
    for headers in others:
        answers = [
            await http.get(f"{BASE}/statements/{sent['id']}", headers=headers),
            await http.get(sent["results"], headers=headers),
            await http.get(f"{BASE}/statements/{sent['id']}/results/99", headers=headers),
            await http.delete(f"{BASE}/statements/{sent['id']}", headers=headers),
        ]
        missing = await http.get(f"{BASE}/statements/{ID}", headers=headers)

        assert {each.status_code for each in answers} == {404}
        assert {each.json()["error"]["message"] for each in answers} == {missing.json()["error"]["message"]}
        assert (await http.get(f"{BASE}/statements", headers=headers)).json() == {"statements": []}


@pytest.mark.parametrize(
    ("error", "status", "type_"),
    [
        (SqlError("Syntax", fix="Write it.", line=2, column=7), 400, "BadSqlException"),
        (NotAllowed("No functions of your own", line=1, column=1), 400, "NotAllowedException"),
        (NoSuchRelation("No such table", line=1, column=15), 404, "NoSuchTableException"),
        (PolicyHides("A policy hides it", policy="ns.p"), 403, "ForbiddenException"),
        (QueryFailed("Division", condition="DIVIDE_BY_ZERO"), 422, "QueryFailedException"),
        (DeadlinePassed("Too long"), 422, "DeadlinePassedException"),
        (OutOfMemory("Too large"), 422, "OutOfMemoryException"),
        (NotReadable("Not Parquet"), 422, "NotReadableException"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_error_says_what_it_is_about(
    http: httpx.AsyncClient, statements: ScriptedStatements, error: Exception, status: int, type_: str
) -> None:
    statements.scripts["at once"] = Script(refusal=error)  # type: ignore[arg-type]
    statements.scripts["later"] = Script(error=error)  # type: ignore[arg-type]

    refused = await http.post(f"{BASE}/statements", json={"sql": "at once"})
    sent = await http.post(f"{BASE}/statements", json={"sql": "later"})
    fetched = await http.get(sent.json()["results"])

    assert refused.status_code == fetched.status_code == status
    assert refused.json() == fetched.json()
    told = refused.json()["error"]
    assert (told["type"], told["code"], told["message"]) == (type_, status, error.message)  # type: ignore[attr-defined]
    assert told.get("details", {}) == error.details  # type: ignore[attr-defined]
    assert (sent.status_code, sent.json()["state"], sent.json()["error"]) == (200, "FAILED", told)


@pytest.mark.parametrize(("error", "status"), [(EngineUnavailable("None"), 503), (QueueFull("Full"), 429)])
async def test_what_may_be_tried_again_says_when_and_what_has_failed_does_not(
    http: httpx.AsyncClient, statements: ScriptedStatements, error: Unavailable, status: int
) -> None:
    statements.scripts["at once"] = Script(refusal=error)
    statements.scripts["later"] = Script(error=error)

    refused = await http.post(f"{BASE}/statements", json={"sql": "at once"})
    sent = await http.post(f"{BASE}/statements", json={"sql": "later"})
    fetched = await http.get(sent.json()["results"])

    assert (refused.status_code, refused.headers["retry-after"]) == (status, "2")
    assert fetched.status_code == 422
    assert "retry-after" not in fetched.headers


async def test_an_error_behind_some_pages_comes_when_they_were_fetched(
    http: httpx.AsyncClient, statements: ScriptedStatements
) -> None:
    statements.scripts["x"] = Script([pa.table({"a": [1]})], QueryFailed("Division"))
    sent = (await http.post(f"{BASE}/statements", json={"sql": "x"})).json()

    first = await http.get(sent["results"])
    second = await http.get(first.json()["next"])

    assert first.json()["rows"] == [[1]]
    assert (second.status_code, second.json()["error"]["message"]) == (422, "Division")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "sql"),
        ({"sql": 1}, "sql"),
        ({"sql": "  \n"}, "sql"),
        ({"sql": "x", "sqll": 1}, "sqll"),
        ({"sql": "x", "namespace": 5}, "namespace"),
        ({"sql": "x", "namespace": "a..b"}, "namespace"),
        ({"sql": "x", "namespace": [""]}, "namespace"),
        ({"sql": "x", "parameters": "a"}, "parameters"),
        ({"sql": "x", "parameters": {"a b": 1}}, "parameters"),
        ({"sql": "x", "parameters": [1] * 1001}, "parameters"),
        ({"sql": "x", "parameters": [[1]]}, "parameters"),
        ({"sql": "x", "parameters": {"a": {"type": "INT", "value": {"b": 1}}}}, "parameters"),
        ({"sql": "x", "timeout": "soon"}, "timeout"),
        ({"sql": "x", "timeout": "0s"}, "timeout"),
        ({"sql": "x", "timeout": "-PT1S"}, "timeout"),
        ({"sql": "x", "timeout": 5}, "timeout"),
        ({"sql": "x", "statement-id": "1"}, "statement-id"),
        ({"sql": "x", "wait": 31}, "wait"),
        ({"sql": "x", "wait": -1}, "wait"),
        ({"sql": "x", "catalog": None}, "catalog"),
    ],
    ids=str,
)
async def test_bad_input_names_the_field_and_the_fix(
    http: httpx.AsyncClient, body: object, field: str
) -> None:
    answer = await http.post(f"{BASE}/statements", json=body)

    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert field in f"{error['details']['field']} {error['details'].get('reason', '')}"
    assert error["fix"]


@pytest.mark.parametrize("page", ["0", "-1", "x", "1.0", "9999999999", "²"])
async def test_a_page_that_is_no_number_is_refused(
    http: httpx.AsyncClient, statements: ScriptedStatements, page: str
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}))
    sent = (await http.post(f"{BASE}/statements", json={"sql": "SELECT 1"})).json()

    answer = await http.get(f"{BASE}/statements/{sent['id']}/results/{page}")

    assert (answer.status_code, answer.json()["error"]["details"]["field"]) == (400, "page")


async def test_a_page_that_is_not_there_is_404(
    http: httpx.AsyncClient, statements: ScriptedStatements
) -> None:
    statements.scripts["SELECT 1"] = Script.of(pa.table({"a": [1]}))
    sent = (await http.post(f"{BASE}/statements", json={"sql": "SELECT 1"})).json()

    assert (await http.get(f"{BASE}/statements/{sent['id']}/results/2")).status_code == 404
    assert (await http.get(f"{BASE}/statements/{sent['id']}", params={"wait": "31"})).status_code == 400


async def test_the_gateway_says_what_it_can(http: httpx.AsyncClient) -> None:
    config = (await http.get(f"{BASE}/config")).json()

    assert config["dialect"] == "spark"
    assert set(config) == {
        *(
            "version",
            "dialect",
            "page-rows",
            "max-sql-bytes",
            "max-wait-seconds",
            "timeout-seconds",
            "formats",
        )
    }


@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer wrong", "Basic dG9rZW4tb2YtYWxpY2U="])
async def test_every_route_but_the_public_ones_wants_a_token(
    http: httpx.AsyncClient, header: str | None
) -> None:
    del http.headers["Authorization"]
    headers = {} if header is None else {"Authorization": header}
    described = (await http.get("/openapi.json")).json()
    asked = 0
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if not path.startswith("/api/query"):
                continue
            answer = await http.request(
                method, f"{path.replace('{', '').replace('}', '')}", headers=headers, json={}
            )
            assert answer.status_code == 401, operation["operationId"]
            assert answer.headers["www-authenticate"] == "Bearer"
            asked += 1
    assert asked == 6
