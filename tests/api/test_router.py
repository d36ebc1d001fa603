import contextlib
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from cynosure.api import asgi
from cynosure.api.asgi import Scope
from cynosure.api.messages import Request, Response
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.percent import decode_segment
from cynosure.api.router import Route, Router
from cynosure.auth.caller import Caller
from cynosure.common.errors import BadInput, Forbidden, NotAuthenticated

pytestmark = pytest.mark.anyio


class Page(Struct, rename="camel"):
    page_size: int = 10
    page_token: str | None = None
    label: list[str] = []


class Column(Struct):
    name: str
    type: str


class Body(Struct):
    name: str
    columns: list[Column] = []


async def echo(request: Request) -> Response:
    return Response.json({"operation": request.scope["cynosure.operation"], "params": dict(request.params)})


def route(method: str, path: str, operation_id: str, **more: Any) -> Route:
    return Route(method, path, echo, operation_id=operation_id, **more)


async def test_a_slash_that_is_percent_encoded_stays_inside_its_segment(client_for) -> None:
    client = client_for(route("GET", "/v1/{prefix}/namespaces/{namespace}", "loadNamespace"))

    answer = await client.get("/v1/main/namespaces/a%2Fb%1Fc%C3%A9")

    assert answer.json()["params"] == {"prefix": "main", "namespace": "a/b\x1fcé"}


@pytest.mark.parametrize("bad", ["%", "%zz", "a%2", "%ff", "%c3%28", "%ed%a0%80"])
async def test_a_segment_that_cannot_be_decoded_is_400(client_for, bad: str) -> None:
    client = client_for(route("GET", "/v1/{prefix}", "get"))
    request = client.build_request("GET", "/v1/x")
    request.url = httpx.URL("http://test", raw_path=b"/v1/" + bad.encode())

    answer = await client.send(request)

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "BadRequestException"


async def test_a_literal_wins_over_a_parameter_but_does_not_hide_what_is_below_the_parameter(
    client_for,
) -> None:
    client = client_for(
        route("GET", "/v1/config", "getConfig"),
        route("GET", "/v1/{prefix}/namespaces", "listNamespaces"),
        route("GET", "/v1/{prefix}", "getPrefix"),
        route("POST", "/v1/{prefix}", "postPrefix"),
    )

    operations = [
        (await client.request(method, path)).json()["operation"]
        for method, path in [
            ("GET", "/v1/config"),
            ("GET", "/v1/%63onfig"),
            ("GET", "/v1/config/namespaces"),
            ("GET", "/v1/other"),
            ("POST", "/v1/config"),
        ]
    ]

    assert operations == ["getConfig", "getConfig", "listNamespaces", "getPrefix", "postPrefix"]
    assert (await client.get("/v1/config/namespaces")).json()["params"] == {"prefix": "config"}


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/v1//x", "/v1/a/b/c", "/v1/a/x/", "/v2/a/x", "/v1/a/x%2F"]
)
async def test_a_path_that_no_route_has_is_404(client_for, path: str) -> None:
    client = client_for(route("GET", "/v1/{prefix}/x", "get"))

    answer = await client.get(path)

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == 404


async def test_a_wrong_method_is_405_and_names_the_right_ones(client_for) -> None:
    client = client_for(route("GET", "/v1/{a}", "get"), route("DELETE", "/v1/{b}", "drop"))

    answer = await client.post("/v1/x")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "DELETE, GET, HEAD"


async def test_head_answers_as_get_without_body_unless_it_has_a_route_of_its_own(client_for) -> None:
    async def exists(request: Request) -> Response:
        return Response(204)

    client = client_for(
        route("GET", "/a/{x}", "get"),
        Route("HEAD", "/b/{x}", exists, operation_id="exists"),
        route("GET", "/b/{x}", "getB"),
    )

    derived, own = await client.head("/a/1"), await client.head("/b/1")

    assert (derived.status_code, derived.content) == (200, b"")
    assert int(derived.headers["content-length"]) == len((await client.get("/a/1")).content)
    assert own.status_code == 204


async def test_the_head_of_a_literal_path_is_that_of_its_own_get(client_for) -> None:
    async def teapot(request: Request) -> Response:
        return Response(418)

    client = client_for(
        Route("GET", "/v1/config", teapot, operation_id="getConfig"),
        route("GET", "/v1/{prefix}", "getPrefix"),
    )

    assert (await client.head("/v1/config")).status_code == 418


async def test_query_parameters_are_typed_and_strangers_are_ignored(client_for) -> None:
    async def show(request: Request) -> Response:
        return Response.json(request.query)

    client = client_for(Route("GET", "/list", show, operation_id="list", query=Page))

    answer = await client.get("/list?pageSize=5&pageToken=a%2Bb+c&label=x&label=y&utm=1")

    assert answer.json() == {"pageSize": 5, "pageToken": "a+b c", "label": ["x", "y"]}


@pytest.mark.parametrize(
    ("query", "field"),
    [("pageSize=five", "pageSize"), ("pageSize=1&pageSize=2", "pageSize"), ("pageToken=%ff", "url")],
)
async def test_a_wrong_query_parameter_is_400_and_named(client_for, query: str, field: str) -> None:
    client = client_for(route("GET", "/list", "list", query=Page))

    answer = await client.get(f"/list?{query}")

    assert answer.status_code == 400
    assert f"field='{field}'" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "empty"),
        (b"{", "not valid JSON"),
        (b'{"name": "\xff"}', "not valid JSON"),
        (b"[" * 100_000, "field='body'"),
        (b'{"name": "t"} x', "not valid JSON"),
        (b'{"name": 5}', "field='name'"),
        (b'{"name": "t", "columns": [{"name": "a", "type": "int"}, {"name": "b"}]}', "field='columns[1]'"),
        (b"{}", "`name`"),
    ],
)
async def test_a_wrong_body_is_400_and_says_where(client_for, body: bytes, named: str) -> None:
    client = client_for(route("POST", "/tables", "create", request=Body))

    answer = await client.post("/tables", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 400
    assert named in answer.json()["error"]["message"]


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_of_another_media_type_is_415(client_for, media_type: str) -> None:
    client = client_for(route("POST", "/tables", "create", request=Body))

    answer = await client.post("/tables", content=b'{"name": "t"}', headers={"content-type": media_type})

    assert answer.status_code == 415


@pytest.mark.parametrize(
    "media_type", ["application/json", "Application/JSON; charset=utf-8", "application/x+json"]
)
async def test_json_may_be_announced_in_several_ways(client_for, media_type: str) -> None:
    client = client_for(route("POST", "/tables", "create", request=Body))

    answer = await client.post("/tables", content=b'{"name": "t"}', headers={"content-type": media_type})

    assert answer.status_code == 200


@pytest.mark.parametrize(
    "routes",
    [
        [route("GET", "/a/{x}", "one"), route("GET", "/a/{y}", "two")],
        [route("GET", "/a", "same"), route("GET", "/b", "same")],
        [route("GET", "a", "one")],
        [route("GET", "/a{x}", "one")],
    ],
)
def test_routes_that_contradict_each_other_are_refused_when_the_router_is_built(routes: list[Route]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Router(routes)


@given(st.text(max_size=40))
def test_every_name_survives_percent_encoding(name: str) -> None:
    assert decode_segment(quote(name, safe="").encode()) == name


@given(st.binary(max_size=40))
def test_any_bytes_decode_to_text_or_are_refused(raw: bytes) -> None:
    with contextlib.suppress(BadInput):
        assert "%" not in decode_segment(raw) or b"%25" in raw


async def test_many_different_paths_do_not_grow_the_memory_of_matches(client_for) -> None:
    router = Router([route("GET", "/t/{name}", "get")], OperatorGate())

    for number in range(10_000):
        router._match("GET", b"/t/%d" % number)

    assert len(router._recent) <= 4096


class Frozen(Struct, frozen=True):
    size: int = 10
    label: tuple[str, ...] = ()


async def test_a_query_that_comes_again_means_the_same_and_another_one_something_else(client_for) -> None:
    async def show(request: Request) -> Response:
        return Response.json([request.query.size, request.query.label])

    client = client_for(Route("GET", "/", show, operation_id="show", query=Frozen))
    queries = ["", "size=2", "size=3", "size=2", "label=a&label=b", "size=2&label=a", "", "size=3"]

    answers = [(await client.get(f"/?{query}")).json() for query in queries]

    assert answers == [[10, []], [2, []], [3, []], [2, []], [10, ["a", "b"]], [2, ["a"]], [10, []], [3, []]]
    for _ in range(2):
        assert (await client.get("/?size=x")).status_code == 400
    assert (await client.get(f"/?size=4&token={'x' * 1000}")).json() == [4, []]


async def test_a_query_that_a_handler_could_change_is_its_own(client_for) -> None:
    async def spoil(request: Request) -> Response:
        request.query.page_size += 1
        return Response.json(request.query.page_size)

    client = client_for(Route("GET", "/", spoil, operation_id="spoil", query=Page))

    assert [(await client.get("/?pageSize=1")).json() for _ in range(3)] == [2, 2, 2]


async def test_many_different_queries_and_paths_are_not_all_remembered() -> None:
    router = Router([Route("GET", "/{name}", echo, operation_id="echo", query=Frozen)], OperatorGate())

    async def ignore(message: Any) -> None:
        return None

    for number in range(5000):
        scope = {"method": "GET", "raw_path": b"/%d" % number, "query_string": b"size=%d" % number}
        scope["headers"] = []
        await router(scope, ignore, ignore)  # type: ignore[arg-type]

    (endpoint, _) = router._match("GET", b"/1")
    assert len(router._recent) <= 4096
    assert len(endpoint._recent_queries or ()) <= 256


# --- the gate --------------------------------------------------------------------------------------


class Closed:
    """Lets in who says "open", and writes down who was refused."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str | None, str]] = []

    async def admit(self, scope: Scope) -> Caller:
        if (b"authorization", b"open") in scope["headers"]:
            return Caller("ann")
        raise NotAuthenticated("Say who you are", fix="Send a token.")

    async def refused(self, scope: Scope, caller: Caller | None, error: Exception) -> None:
        name = caller.principal if caller else None
        self.told.append((scope[asgi.OPERATION], name, type(error).__name__))


async def who(request: Request) -> Response:
    return Response.json({"principal": request.scope[asgi.CALLER].principal})


async def refuse(request: Request) -> Response:
    raise Forbidden("Not for you", fix="Ask for it.")


async def test_a_route_is_closed_unless_it_says_that_it_is_public(client_for) -> None:
    gate = Closed()
    client = client_for(
        Route("GET", "/closed", who, operation_id="closed"),
        route("GET", "/public", "public", is_public=True),
        gate=gate,
    )

    stranger = await client.get("/closed")
    known = await client.get("/closed", headers={"authorization": "open"})
    public = await client.get("/public")

    assert (stranger.status_code, known.status_code, public.status_code) == (401, 200, 200)
    assert known.json() == {"principal": "ann"}
    assert gate.told == [("closed", None, "NotAuthenticated")]


async def test_nothing_of_a_stranger_is_decoded(client_for) -> None:
    client = client_for(route("POST", "/closed", "closed", request=Body, query=Page), gate=Closed())

    answer = await client.post("/closed?pageSize=five", content=b"{not json", headers={"content-type": "x/y"})

    assert answer.status_code == 401


async def test_the_gate_is_told_of_what_a_handler_refuses(client_for) -> None:
    gate = Closed()
    client = client_for(Route("GET", "/closed", refuse, operation_id="closed"), gate=gate)

    answer = await client.get("/closed", headers={"authorization": "open"})

    assert answer.status_code == 403
    assert gate.told == [("closed", "ann", "Forbidden")]


def test_routes_without_a_gate_must_be_public() -> None:
    with pytest.raises(ValueError, match="need a gate"):
        Router([route("GET", "/closed", "closed")])
    Router([route("GET", "/public", "public", is_public=True)])
