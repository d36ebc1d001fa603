"""What a remote may do to a client: too much, too slowly, to the wrong place, about something else.

Holds I114, I115.
"""

import random
import tracemalloc
from collections.abc import Awaitable, Callable

import pytest

from cynosure.catalog.connection import Authentication
from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.remote import RemoteTable, Tag
from cynosure.federation.remotes.rest.remote import RestRemote
from cynosure.federation.settings import FederationSettings
from cynosure.testing import lying_remote as lies
from cynosure.testing.lying_remote import Lie, LyingRemote
from cynosure.testing.remote_samples import plan_table, setting

from .liars import HASTY, OAUTH, ORDERS, PATIENT, PLACE, Liar, table_answer, table_metadata

pytestmark = pytest.mark.anyio

SLOW = ("a slow drip", "silence")
DEEP = b'{"metadata":' + b"[" * 100_000
UNBELIEVED: dict[str, tuple[Lie, type[CynosureError]]] = {
    "a body of a gigabyte": (lies.huge(1 << 30), RemoteMisbehaved),
    "a bomb of a gigabyte": (lies.bomb(1 << 30), RemoteMisbehaved),
    "damaged compression": (
        lies.raw(b"no gzip", content_type="application/json", content_encoding="gzip"),
        RemoteMisbehaved,
    ),
    "unknown compression": (
        lies.raw(b"{}", content_type="application/json", content_encoding="br"),
        RemoteMisbehaved,
    ),
    "no JSON": (lies.raw(b"<html>", content_type="application/json"), RemoteMisbehaved),
    "no UTF-8": (lies.raw(b'{"metadata":"\xff"}', content_type="application/json"), RemoteMisbehaved),
    "deeper than anything": (lies.raw(DEEP, content_type="application/json"), RemoteMisbehaved),
    "another content type": (lies.raw(b"{}", content_type="text/html"), RemoteMisbehaved),
    "no content type": (lies.raw(b"{}"), RemoteMisbehaved),
    "nothing at all": (lies.raw(b"", content_type="application/json"), RemoteMisbehaved),
    "other JSON": (lies.answer([1, 2]), RemoteMisbehaved),
    "no metadata": (lies.answer({"metadata-location": "file:///x"}), RemoteMisbehaved),
    "invalid metadata": (lies.answer(table_answer(metadata={"format-version": 2})), RemoteMisbehaved),
    "metadata of a future format": (
        lies.answer(table_answer(metadata=table_metadata(**{"format-version": 9}))),
        RemoteMisbehaved,
    ),
    "no metadata location": (lies.answer(table_answer(**{"metadata-location": None})), RemoteMisbehaved),
    "unchanged, though nobody asked": (lies.raw(b"", 304), RemoteMisbehaved),
    "a proxy's 404": (lies.raw(b"<html>not here", 404, content_type="text/html"), RemoteMisbehaved),
    "a gateway's 404": (
        lies.answer({"error": {"code": 404, "message": "no route", "status": "NOT_FOUND"}}, 404),
        RemoteMisbehaved,
    ),
    "a 404 about something else": (lies.refusal(404, "NoSuchReferenceException"), RemoteMisbehaved),
    "a warehouse by another word": (lies.refusal(404, "WarehouseNotFound"), RemoteMisbehaved),
    "a 404 about nothing": (lies.answer({"error": {}}, 404), RemoteMisbehaved),
    "another 4xx": (lies.refusal(418, "TeapotException"), RemoteMisbehaved),
    "a gigabyte of refusal": (lies.huge(1 << 30, 403), RemoteRefused),
    "no right": (lies.refusal(403, "ForbiddenException"), RemoteRefused),
    "no such warehouse": (lies.refusal(404, "NoSuchWarehouseException"), RemoteRefused),
    "too busy": (lies.refusal(429, "TooManyRequestsException"), RemoteUnavailable),
    "not now": (lies.raw(b"<html>", 503, content_type="text/html"), RemoteUnavailable),
    "broken inside": (lies.refusal(500, "InternalServerError"), RemoteUnavailable),
    "a slow drip": (lies.drip(), RemoteUnavailable),
    "silence": (lies.silence(), RemoteUnavailable),
    "the end before an answer": (lies.cut(), RemoteUnavailable),
    "the end in an answer": (lies.cut_answer(), RemoteUnavailable),
    "no HTTP": (lies.cut(b"SSH-2.0-OpenSSH\r\n\r\n"), RemoteUnavailable),
    "headers without end": (lies.huge_headers(), RemoteUnavailable),
}


def settings_for(name: str) -> FederationSettings:
    return HASTY if name in SLOW else PATIENT


@pytest.mark.parametrize("name", UNBELIEVED)
async def test_a_load_that_is_lied_to_is_refused_in_our_own_words(liar: Liar, name: str):
    lie, expected = UNBELIEVED[name]
    liar.server.says("GET", "/tables/orders", lie)

    with pytest.raises(expected) as raised:
        await liar.open(settings=settings_for(name)).load_table(ORDERS)

    assert "what the remote says" not in str(raised.value)
    assert len(liar.server.heard_at("/tables/orders")) == 1


@pytest.mark.parametrize("kind", ["", "NotFoundException", "NoSuchWarehouse", "NoSuchTableException"])
async def test_a_namespace_is_missing_only_if_the_remote_says_just_that(liar: Liar, kind: str):
    liar.server.says("GET", "/namespaces/sales", lies.refusal(404, kind))
    liar.server.says("GET", "/namespaces/sales/tables", lies.refusal(404, kind))
    remote = liar.open()
    with pytest.raises(RemoteMisbehaved):
        await remote.load_namespace(("sales",))
    with pytest.raises(RemoteMisbehaved):
        await remote.list_tables(("sales",), token=None, size=10)


@pytest.mark.parametrize("lie", [lies.huge(1 << 30), lies.bomb(1 << 30)], ids=["plain", "packed"])
async def test_an_answer_is_never_larger_in_memory_than_allowed(liar: Liar, lie: Lie):
    liar.server.says("GET", "/tables/orders", lie)
    remote = liar.open()
    await remote.check()
    tracemalloc.start()
    try:
        with pytest.raises(RemoteMisbehaved):
            await remote.load_table(ORDERS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert PATIENT.answer_bytes == 2**20
    assert peak < 8 * PATIENT.answer_bytes


LARGE: dict[str, tuple[int, Callable[[RestRemote], Awaitable[object]]]] = {
    "/namespaces/sales/tables": (16, lambda remote: remote.list_tables(("sales",), token=None, size=10)),
    "/namespaces/sales/views": (16, lambda remote: remote.list_views(("sales",), token=None, size=10)),
    "/namespaces": (16, lambda remote: remote.list_namespaces((), token=None, size=10)),
    "/namespaces/sales": (4, lambda remote: remote.load_namespace(("sales",))),
    "/tables/orders": (1, lambda remote: remote.load_table(ORDERS)),
}
"""What is decoded at once, and how many MiB of it: more would hold up everybody else in the process."""


@pytest.mark.parametrize("path", LARGE)
async def test_what_is_decoded_at_once_is_smaller_than_an_answer_may_be(liar: Liar, path: str):
    most, ask = LARGE[path]
    padding = {"x": "x" * (most * 2**20)}
    body = {"properties": {}, "identifiers": [], "namespaces": [], **padding}
    lie = table_answer(config=padding) if path == "/tables/orders" else body
    liar.server.says("GET", path, lies.answer(lie))

    with pytest.raises(RemoteMisbehaved) as raised:
        await ask(liar.open(settings=FederationSettings()))

    assert raised.value.details["problem"] == "too large"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nobody_is_sent_elsewhere(liar: Liar, status: int):
    async with LyingRemote() as elsewhere:
        elsewhere.says("GET", "/stolen", lies.answer(table_answer()))
        liar.server.says("GET", "/tables/orders", lies.redirect(f"{elsewhere.url}/stolen", status))
        liar.server.says("POST", "/tables/orders", lies.redirect(f"{elsewhere.url}/stolen", status))
        remote = liar.open()

        with pytest.raises(RemoteMisbehaved):
            await remote.load_table(ORDERS)
        with pytest.raises(RemoteMisbehaved):
            await remote.commit_table(setting(ORDERS, None, color="red"))

    assert elsewhere.heard == []


async def test_a_configuration_cannot_send_us_elsewhere(liar: Liar):
    async with LyingRemote() as elsewhere:
        told = {"uri": elsewhere.url, "prefix": "../../../stolen", "oauth2-server-uri": elsewhere.url}
        liar.server.says("GET", "/v1/config", lies.answer({"defaults": {}, "overrides": told}))
        liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))

        loaded = await liar.open(OAUTH).load_table(ORDERS)

    assert isinstance(loaded, RemoteTable)
    assert elsewhere.heard == []
    [heard] = liar.server.heard_at("/tables/orders")
    assert heard.path == "/api/catalog/v1/namespaces/sales/tables/orders"


CHANGED_OR_NOT: dict[str, Lie] = {
    "the end before an answer": lies.cut(),
    "the end in an answer": lies.cut_answer(),
    "silence": lies.silence(),
    "a slow drip": lies.drip(),
    "broken inside": lies.refusal(500, "InternalServerError"),
    "a bad gateway": lies.raw(b"<html>", 502),
    "a gateway that did not wait": lies.raw(b"<html>", 504),
    "a proxy whose server was cut off": lies.raw(b"upstream connect error or disconnect/reset", 503),
    "state unknown": lies.refusal(500, "CommitStateUnknownException"),
    "still under way": lies.refusal(409, "request_in_progress"),
    "done, without JSON": lies.raw(b"<html>", content_type="text/html"),
    "done, too large": lies.huge(1 << 26),
    "done, with invalid metadata": lies.answer(table_answer(metadata={})),
    "done, to another table": lies.answer(table_answer()),
}


@pytest.mark.parametrize("name", CHANGED_OR_NOT)
async def test_a_change_that_may_be_done_is_neither_done_nor_refused(liar: Liar, name: str):
    liar.server.says("POST", "/tables/orders", CHANGED_OR_NOT[name])
    base = RemoteTable(plan_table(PLACE, ORDERS).metadata, Tag("file:///lake/orders/metadata/1.json"))

    with pytest.raises(OutcomeUnknown):
        await liar.open(settings=settings_for(name)).commit_table(setting(ORDERS, base, color="red"))

    assert len(liar.server.heard_at("/tables/orders")) == 1


@pytest.mark.parametrize("lie", [lies.raw(b"", 429), lies.refusal(503, "ServiceUnavailableException")])
async def test_a_change_that_was_turned_away_is_not_done(liar: Liar, lie: Lie):
    liar.server.says("POST", "/tables/orders", lie)

    with pytest.raises(RemoteUnavailable):
        await liar.open().commit_table(setting(ORDERS, None, color="red"))


def guard(liar: Liar, authentication: Authentication | None = None) -> GuardedRemote:
    settings = FederationSettings(break_after=2, retries=0)
    return GuardedRemote("near", lambda: liar.open(authentication), settings, SystemClock(), random.Random(1))


@pytest.mark.parametrize("path", ["/tables/orders", "/v1/config", "/oauth/tokens"])
async def test_who_asks_too_often_closes_the_catalog_to_nobody(liar: Liar, path: str):
    patience = lies.refusal(429, "TooManyRequestsException")
    for method in ("GET", "POST"):
        liar.server.says(method, path, patience)
    guarded = guard(liar, OAUTH)

    for _ in range(3):
        with pytest.raises(RemoteUnavailable):
            await guarded.load_table(ORDERS)
        with pytest.raises(RemoteUnavailable):
            await guarded.commit_table(setting(ORDERS, None, color="red"))

    assert guarded.health().breaker == "closed"


@pytest.mark.parametrize("lie", [lies.raw(b"<html>", 503), lies.refusal(503, "ServiceUnavailableException")])
async def test_a_remote_that_is_there_for_nobody_is_left_alone(liar: Liar, lie: Lie):
    liar.server.says("GET", "/tables/orders", lie)
    guarded = guard(liar)

    for _ in range(2):
        with pytest.raises(RemoteUnavailable):
            await guarded.load_table(ORDERS)

    assert guarded.health().breaker == "open"


async def test_a_change_that_never_left_is_not_done(liar: Liar):
    remote = liar.open()
    await remote.check()
    await liar.server.__aexit__(None, None, None)

    with pytest.raises(RemoteUnavailable):
        await remote.commit_table(setting(ORDERS, None, color="red"))


async def test_a_remote_that_refuses_every_token_is_not_asked_for_ever(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.refusal(401, "NotAuthorizedException"))
    remote = liar.open(OAUTH)

    for _ in range(3):
        with pytest.raises(RemoteRefused):
            await remote.load_table(ORDERS)

    # A token that is a moment old is not renewed because it was refused.
    assert len(liar.server.heard_at("/oauth/tokens")) == 1
    assert len(liar.server.heard_at("/tables/orders")) == 3


@pytest.mark.parametrize(
    ("lie", "expected"),
    [
        (lies.huge(1 << 30), RemoteMisbehaved),
        (lies.raw(b"<html>", content_type="text/html"), RemoteMisbehaved),
        (lies.token("with\r\nx-smuggled: header"), RemoteMisbehaved),
        (lies.token(""), RemoteMisbehaved),
        (lies.token("x" * 100_000), RemoteMisbehaved),
        (lies.token(token_type="mac"), RemoteMisbehaved),
        (lies.token(expires_in="soon"), RemoteMisbehaved),
        (lies.redirect("http://127.0.0.1:1/stolen"), RemoteMisbehaved),
        (lies.refusal(401, "invalid_client"), RemoteRefused),
        (lies.refusal(400, "invalid_scope"), RemoteRefused),
        (lies.refusal(500, "InternalServerError"), RemoteUnavailable),
    ],
)
async def test_a_token_endpoint_that_lies_is_noticed(liar: Liar, lie: Lie, expected: type[CynosureError]):
    liar.server.says("POST", "/oauth/tokens", lie)

    with pytest.raises(expected) as raised:
        await liar.open(OAUTH).load_table(ORDERS)

    assert "the-client-secret" not in repr(raised.value)
    assert liar.server.heard_at("/tables/orders") == []


@pytest.mark.parametrize("life", [-5, 0, 1e300, None])
async def test_what_a_token_endpoint_says_about_times_is_bounded(liar: Liar, life: float | None):
    liar.server.says("POST", "/oauth/tokens", lies.token(expires_in=life))
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open(OAUTH)

    for _ in range(3):
        await remote.load_table(ORDERS)

    assert len(liar.server.heard_at("/oauth/tokens")) == 1


async def test_a_list_that_begins_again_is_noticed(liar: Liar):
    page = {"identifiers": [{"namespace": ["sales"], "name": "orders"}], "next-page-token": "again"}
    liar.server.says("GET", "/tables", lies.answer(page))
    remote = liar.open()
    first = await remote.list_tables(("sales",), token=None, size=10)

    with pytest.raises(RemoteMisbehaved):
        await remote.list_tables(("sales",), token=first.next_token, size=10)


async def test_empty_pages_do_not_go_on_for_ever(liar: Liar):
    pages = [{"identifiers": [], "next-page-token": str(number)} for number in range(1000)]
    liar.server.says("GET", "/tables", lies.in_turn(*map(lies.answer, pages)))
    remote = liar.open()

    async def list_all() -> None:
        token = None
        for _ in pages:
            token = (await remote.list_tables(("sales",), token=token, size=10)).next_token

    with pytest.raises(RemoteMisbehaved):
        await list_all()

    assert len(liar.server.heard_at("/tables")) < 100


async def test_names_of_elsewhere_are_not_listed(liar: Liar):
    liar.server.says(
        "GET", "/tables", lies.answer({"identifiers": [{"namespace": ["secret"], "name": "plans"}]})
    )
    liar.server.says("GET", "/namespaces", lies.answer({"namespaces": [["a", "b"]]}))
    remote = liar.open()

    with pytest.raises(RemoteMisbehaved):
        await remote.list_tables(("sales",), token=None, size=10)
    with pytest.raises(RemoteMisbehaved):
        await remote.list_namespaces((), token=None, size=10)


async def test_names_that_nothing_here_can_have_are_passed_on_for_whoever_asked_to_tell(liar: Liar):
    names = ["fine", "", "..", "with\nline", "sep\x1farated"]
    told = [{"namespace": ["sales"], "name": name} for name in names]
    liar.server.says("GET", "/tables", lies.answer({"identifiers": told}))

    assert (await liar.open().list_tables(("sales",), token=None, size=10)).names == names


async def test_a_name_of_any_length_makes_no_long_token(liar: Liar):
    names = ["x" * 100_000, "y"]
    told = [{"namespace": ["sales"], "name": name} for name in names]
    liar.server.says("GET", "/tables", lies.answer({"identifiers": told}))
    remote = liar.open()

    first = await remote.list_tables(("sales",), token=None, size=1)
    rest = await remote.list_tables(("sales",), token=first.next_token, size=1)

    assert (first.names, rest.names) == (["x" * 257], ["y"])
    assert first.next_token is not None
    assert len(first.next_token) < 1_000


async def test_a_tag_that_no_header_can_hold_is_not_kept(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer(), etag="x" * 5000))

    loaded = await liar.open().load_table(ORDERS)

    assert isinstance(loaded, RemoteTable)
    assert loaded.tag.etag is None
