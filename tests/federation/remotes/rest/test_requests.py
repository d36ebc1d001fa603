"""What is sent to a REST remote, and what its answers become."""

import asyncio
import json
from typing import Any

import pytest

from cynosure.catalog.errors import NamespaceNotEmpty, NoSuchNamespace, NoSuchTable, NoSuchView, ViewExists
from cynosure.catalog.names import Identifier
from cynosure.common.errors import BadInput, BadPageToken, OutcomeUnknown
from cynosure.federation.errors import (
    InCircle,
    NotOffered,
    RemoteConflict,
    RemoteFileMissing,
    RemoteMisbehaved,
)
from cynosure.federation.remote import UNCHANGED, NewTable, RemoteTable, TableCommit, Tag
from cynosure.iceberg.requirements import AssertRefSnapshotId
from cynosure.iceberg.updates import decode_updates
from cynosure.storage.errors import FileMissing
from cynosure.testing import lying_remote as lies
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.remote_samples import plan_table, setting

from .liars import ORDERS, PLACE, REPORT, Liar, table_answer, view_answer

pytestmark = pytest.mark.anyio

KEYED = {"defaults": {}, "overrides": {}, "idempotency-key-lifetime": "PT30M"}


async def test_requests_go_below_the_prefix_that_the_remote_gives(liar: Liar):
    liar.server.says("GET", "/v1/config", lies.answer({"overrides": {"prefix": "main%7Cwh"}}))
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))

    await liar.open().load_table(ORDERS)

    [config], [heard] = liar.server.heard_at("/v1/config"), liar.server.heard_at("/tables/orders")
    assert config.query == {"warehouse": "far"}
    assert heard.path == "/api/catalog/v1/main%7Cwh/namespaces/sales/tables/orders"
    assert heard.query == {"snapshots": "all"}
    assert heard.headers["authorization"] == "Bearer the-token"


async def test_levels_are_joined_as_the_remote_wants_it(liar: Liar):
    remote = liar.open()
    liar.server.says("GET", "/tables/o/r", lies.answer(table_answer()))
    await remote.load_table(Identifier(("a", "b.c"), "o/r"))
    liar.server.says("GET", "/v1/config", lies.answer({"overrides": {"namespace-separator": "%2E"}}))
    await remote.check()
    await remote.load_table(Identifier(("a", "b"), "o/r"))

    paths = [heard.path.removeprefix("/api/catalog/v1/") for heard in liar.server.heard_at("/tables/o/r")]
    assert paths == ["namespaces/a%1Fb.c/tables/o%2Fr", "namespaces/a.b/tables/o%2Fr"]


async def test_a_level_that_holds_the_separator_reaches_nothing_below_another(liar: Liar):
    liar.server.says("GET", "/v1/config", lies.answer({"overrides": {"namespace-separator": "%2E"}}))
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote, dotted = liar.open(), ("a.b",)

    with pytest.raises(NoSuchTable):
        await remote.load_table(Identifier(dotted, "orders"))
    with pytest.raises(NoSuchNamespace):
        await remote.load_namespace(dotted)
    with pytest.raises(NoSuchNamespace):
        await remote.list_namespaces(dotted, token=None, size=10)
    with pytest.raises(NoSuchNamespace):
        await remote.drop_namespace(dotted)
    with pytest.raises(BadInput):
        await remote.create_namespace(dotted, {})

    assert [each.path for each in liar.server.heard] == ["/api/catalog/v1/config"]


async def test_the_configuration_is_asked_for_once(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open()

    for _ in range(3):
        await remote.load_table(ORDERS)

    assert len(liar.server.heard_at("/v1/config")) == 1


async def test_a_configuration_that_has_become_another_is_found_though_the_remote_is_asked_all_the_time(
    liar: Liar,
):
    clock = ManualClock()
    liar.server.says("GET", "/v1/config", lies.answer({"overrides": {"prefix": "old"}}))
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open(clock=clock)
    await remote.load_table(ORDERS)
    told = asyncio.Event()

    async def tell_late(heard: lies.Heard, writer: asyncio.StreamWriter) -> None:
        await told.wait()
        await lies.answer({"overrides": {"prefix": "new"}})(heard, writer)

    liar.server.says("GET", "/v1/config", tell_late)
    for _ in range(10):
        # Nobody waits for the answer.
        await clock.advance(50)
        await remote.load_table(ORDERS)
    told.set()
    async with asyncio.timeout(10):
        while "/v1/new/" not in liar.server.heard_at("/tables/orders")[-1].path:
            await remote.load_table(ORDERS)

    assert len(liar.server.heard_at("/v1/config")) == 2


async def test_a_remote_tells_what_it_can_do(liar: Liar):
    remote = liar.open()
    assert not remote.abilities.takes_keys
    endpoints = ["GET /v1/{prefix}/namespaces", "POST /v1/{prefix}/transactions/commit"]
    liar.server.says("GET", "/v1/config", lies.answer({**KEYED, "endpoints": endpoints}))

    await remote.check()

    assert remote.abilities.takes_keys
    assert remote.abilities.has_transactions
    assert not remote.abilities.has_views


VIEWS = "GET /v1/{prefix}/namespaces/{namespace}/views/{view}"
REGISTRATION = "POST /v1/{prefix}/namespaces/{namespace}/register-view"


@pytest.mark.parametrize(
    ("told", "can"),
    [
        ({"endpoints": [VIEWS, REGISTRATION]}, True),
        ({"endpoints": [VIEWS]}, False),
        ({"endpoints": [REGISTRATION]}, False),
        ({"overrides": {"view-endpoints-supported": "true"}}, True),
        ({}, False),
    ],
)
async def test_a_view_is_registered_where_the_remote_can(liar: Liar, told: dict[str, Any], can: bool):
    liar.server.says("GET", "/v1/config", lies.answer({**KEYED, **told}))
    liar.server.says("POST", "/register-view", lies.answer(view_answer()))
    remote, file = liar.open(), "file:///lake/report/metadata/1.json"

    if can:
        registered = await remote.register_view(REPORT, file, key="the-key")
        assert registered.tag.metadata_location == file
        [heard] = liar.server.heard_at("/register-view")
        assert heard.path == "/api/catalog/v1/namespaces/sales/register-view"
        assert json.loads(heard.body) == {"name": "report", "metadata-location": file}
        assert heard.headers["idempotency-key"] == "the-key"
    else:
        with pytest.raises(NotOffered):
            await remote.register_view(REPORT, file)
        assert liar.server.heard_at("/register-view") == []
    assert remote.abilities.registers_views is can


async def test_what_a_registration_of_a_view_is_refused_with(liar: Liar):
    told = {"overrides": {"view-endpoints-supported": "true"}}
    liar.server.says("GET", "/v1/config", lies.answer(told))
    remote, file = liar.open(), "file:///lake/report/metadata/1.json"

    for answer, error in (
        (lies.refusal(409, "AlreadyExistsException"), ViewExists),
        (lies.refusal(404, "NoSuchNamespaceException"), NoSuchNamespace),
        (lies.refusal(404, "NotFoundException"), FileMissing),
        (lies.refusal(400, "BadRequestException"), BadInput),
        (lies.refusal(500, "InternalServerError"), OutcomeUnknown),
        (lies.answer({}), OutcomeUnknown),
    ):
        liar.server.says("POST", "/register-view", answer)
        with pytest.raises(error):
            await remote.register_view(REPORT, file)


async def test_a_key_is_sent_only_to_a_remote_that_takes_keys(liar: Liar):
    liar.server.says("DELETE", "/tables/orders", lies.raw(b"", 204))
    remote = liar.open()
    await remote.drop_table(ORDERS, is_purge=False, key="the-key")
    liar.server.says("GET", "/v1/config", lies.answer(KEYED))
    await remote.check()
    await remote.drop_table(ORDERS, is_purge=True, key="the-key")

    first, second = liar.server.heard_at("/tables/orders")
    assert "idempotency-key" not in first.headers
    assert first.query == {"purgeRequested": "false"}
    assert second.headers["idempotency-key"] == "the-key"
    assert second.query == {"purgeRequested": "true"}


async def test_a_known_tag_is_all_that_is_compared(liar: Liar):
    remote = liar.open()
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer(), etag='"one"'))
    first = await remote.load_table(ORDERS)
    assert isinstance(first, RemoteTable)
    liar.server.says("GET", "/tables/orders", lies.raw(b"", 304))
    assert await remote.load_table(ORDERS, first.tag) == UNCHANGED
    # Some servers send it all the same.
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer(), etag='"one"'))
    assert await remote.load_table(ORDERS, first.tag) == UNCHANGED
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer(), etag='"two"'))
    changed = await remote.load_table(ORDERS, first.tag)

    assert isinstance(changed, RemoteTable)
    assert changed.tag.metadata_location == first.tag.metadata_location
    assert changed.tag.etag != first.tag.etag
    _, *again = liar.server.heard_at("/orders")
    assert [heard.headers["if-none-match"] for heard in again] == ['"one"'] * 3


async def test_a_tag_of_another_remote_is_not_believed(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer(), etag='"one"'))
    first = await liar.open().load_table(ORDERS)
    assert isinstance(first, RemoteTable)

    other = await liar.open(remote_name="another").load_table(ORDERS, first.tag)

    assert isinstance(other, RemoteTable)
    assert "if-none-match" not in liar.server.heard_at("/orders")[-1].headers


async def test_without_tags_the_place_of_the_metadata_is_compared(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open()

    same = await remote.load_table(ORDERS, Tag("file:///lake/orders/metadata/1.json"))
    other = await remote.load_table(ORDERS, Tag("file:///lake/orders/metadata/0.json"))

    assert same == UNCHANGED
    assert isinstance(other, RemoteTable)
    assert not any("if-none-match" in heard.headers for heard in liar.server.heard_at("/orders"))


async def test_credentials_of_the_remote_are_asked_for_only_when_wanted(liar: Liar):
    given = {"prefix": "s3://lake/orders", "config": {"s3.access-key-id": "K"}}
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer(**{"storage-credentials": [given]})))

    await liar.open().load_table(ORDERS)
    loaded = await liar.open(ask_credentials=True).load_table(ORDERS)

    without, with_ = liar.server.heard_at("/tables/orders")
    assert "x-iceberg-access-delegation" not in without.headers
    assert with_.headers["x-iceberg-access-delegation"] == "vended-credentials"
    assert isinstance(loaded, RemoteTable)
    assert list(loaded.storage_credentials) == [("s3://lake/orders", {"s3.access-key-id": "K"})]


async def test_a_creation_says_what_the_remote_cannot_choose_itself(liar: Liar):
    liar.server.says("POST", "/tables", lies.answer(table_answer()))
    planned = plan_table(PLACE, ORDERS, owner="kit")
    remote = liar.open()

    await remote.create_table(planned)
    await remote.create_table(
        NewTable(table=ORDERS, metadata=planned.metadata, is_placed=False, is_staged=True)
    )

    placed, left_open = (heard.json() for heard in liar.server.heard_at("/tables"))
    assert placed["location"] == planned.metadata.location
    assert placed["properties"]["format-version"] == "2"
    assert placed["properties"]["owner"] == "kit"
    assert [field["name"] for field in placed["schema"]["fields"]] == ["id", "note"]
    assert "location" not in left_open
    assert (placed["stage-create"], left_open["stage-create"]) == (False, True)


async def test_changes_are_sent_as_their_client_sent_them(liar: Liar):
    liar.server.says("POST", "/tables/orders", lies.answer(table_answer()))
    snapshot = {"snapshot-id": 2**60 + 1, "timestamp-ms": 1, "manifest-list": "s3://x", "x-unknown": [1]}
    updates = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 2**60 + 1},
        {"action": "add-schema", "schema": {"type": "struct", "fields": [], "x-unknown": None}},
    ]
    change = TableCommit(
        table=ORDERS,
        requirements=[AssertRefSnapshotId("main", None)],
        updates=decode_updates(json.dumps(updates).encode()),
    )

    await liar.open().commit_table(change)

    sent = liar.server.heard_at("/tables/orders")[0].json()
    assert sent["updates"] == updates
    assert sent["requirements"] == [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}]


async def test_headers_of_the_connection_go_with_every_request(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    properties = {
        "header.Polaris-Realm": "two",
        "header.Authorization": "Bearer stolen",
        "header.X-Bad": "line\r\nx-smuggled: 1",
        "other": "property",
    }

    await liar.open(properties=properties).load_table(ORDERS)

    for heard in liar.server.heard:
        assert heard.headers["polaris-realm"] == "two"
        assert heard.headers["authorization"] == "Bearer the-token"
        assert "x-smuggled" not in heard.headers
        assert "x-bad" not in heard.headers


async def test_a_remote_without_pages_is_cut_into_some(liar: Liar):
    names = [f"t{number:03}" for number in range(25)]
    told = [{"namespace": ["sales"], "name": name} for name in reversed(names)]
    liar.server.says("GET", "/tables", lies.answer({"identifiers": told}))
    remote = liar.open()

    first = await remote.list_tables(("sales",), token=None, size=10)
    # What is dropped meanwhile shifts nothing.
    liar.server.says("GET", "/tables", lies.answer({"identifiers": told[:-3]}))
    second = await remote.list_tables(("sales",), token=first.next_token, size=10)
    third = await remote.list_tables(("sales",), token=second.next_token, size=10)

    assert [*first.names, *second.names, *third.names] == names
    assert third.next_token is None


async def test_pages_of_the_remote_are_passed_on_in_its_order(liar: Liar):
    def page(*names: str, token: str | None = None) -> lies.Lie:
        told = [{"namespace": ["sales"], "name": name} for name in names]
        return lies.answer({"identifiers": told, "next-page-token": token})

    liar.server.says("GET", "/tables", lies.in_turn(page("b", "a", token="more"), page("d", "c")))
    remote = liar.open()

    first = await remote.list_tables(("sales",), token=None, size=2)
    second = await remote.list_tables(("sales",), token=first.next_token, size=2)

    assert (first.names, second.names, second.next_token) == (["b", "a"], ["d", "c"], None)
    assert [heard.query for heard in liar.server.heard_at("/tables")] == [
        {"pageToken": "", "pageSize": "2"},
        {"pageToken": "more", "pageSize": "2"},
    ]


async def test_a_token_of_no_list_is_refused(liar: Liar):
    with pytest.raises(BadPageToken):
        await liar.open().list_tables(("sales",), token="no token", size=10)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("NoSuchTableException", NoSuchTable),
        ("NoSuchNamespaceException", NoSuchNamespace),
        ("", RemoteMisbehaved),
    ],
)
async def test_what_is_missing_is_told_by_its_type(liar: Liar, kind: str, expected: type[Exception]):
    liar.server.says("POST", "/tables/rename", lies.refusal(404, kind))

    with pytest.raises(expected):
        await liar.open().rename_table(ORDERS, Identifier(("other",), "orders"))


async def test_a_load_answers_about_what_was_asked_whatever_is_missing(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.refusal(404, "NoSuchNamespaceException"))
    liar.server.says("GET", "/views/orders", lies.refusal(404, "NoSuchNamespaceException"))

    with pytest.raises(NoSuchTable):
        await liar.open().load_table(ORDERS)
    with pytest.raises(NoSuchView):
        await liar.open().load_view(ORDERS)


@pytest.mark.parametrize("status", [409, 412])
async def test_a_conflict_is_the_remotes(liar: Liar, status: int):
    liar.server.says("POST", "/tables/orders", lies.refusal(status, "CommitFailedException", "secret words"))

    with pytest.raises(RemoteConflict) as raised:
        await liar.open().commit_table(setting(ORDERS, None, color="red"))

    assert "secret words" not in str(raised.value)


@pytest.mark.parametrize("status", [400, 409])
async def test_a_namespace_that_holds_something_is_told_by_older_servers_too(liar: Liar, status: int):
    liar.server.says("DELETE", "/sales", lies.refusal(status, "NamespaceNotEmptyException"))

    with pytest.raises(NamespaceNotEmpty):
        await liar.open().drop_namespace(("sales",))


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_what_the_remote_does_not_accept_is_the_callers_input(liar: Liar, status: int):
    liar.server.says("POST", "/tables/orders", lies.refusal(status, "ValidationException", "secret words"))

    with pytest.raises(BadInput) as raised:
        await liar.open().commit_table(setting(ORDERS, None, color="red"))

    assert "secret words" not in str(raised.value)


async def test_a_name_that_the_remote_cannot_have_is_the_callers_input_and_not_asked_again(liar: Liar):
    # What a web server answers by itself, before the catalog behind it is asked.
    liar.server.says("GET", "/tables/orders", lies.raw(b"Ambiguous URI", 400, content_type="text/html"))

    with pytest.raises(BadInput) as raised:
        await liar.open().load_table(ORDERS)

    assert raised.value.field == "name"


async def test_a_table_whose_metadata_file_is_missing_is_not_gone(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.refusal(404, "NotFoundException"))

    with pytest.raises(FileMissing):
        await liar.open().load_table(ORDERS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Failed to open input stream for file: file:///lake/orders/1.json", "file:///lake/orders/1.json"),
        ("Failed to open input stream for file: file:///lake/orders/2.json", None),
        ("", None),
    ],
)
async def test_a_missing_file_is_known_by_the_remotes_words_only_if_it_was_seen(
    liar: Liar, words: str, expected: str | None
):
    liar.server.says("GET", "/tables/orders", lies.refusal(404, "NotFoundException", words))

    with pytest.raises(RemoteFileMissing) as raised:
        await liar.open().load_table(ORDERS, Tag("file:///lake/orders/1.json"))

    assert raised.value.location == expected
    assert "1.json" not in str(raised.value)


@pytest.mark.parametrize("status", [405, 406, 501])
async def test_a_change_that_the_remote_does_not_do_is_said_to_be_none_of_its(liar: Liar, status: int):
    liar.server.says("POST", "/register", lies.refusal(status, "UnsupportedOperationException"))

    with pytest.raises(NotOffered):
        await liar.open().register_table(ORDERS, "file:///lake/orders/1.json", is_overwrite=True)


async def test_a_remote_that_says_that_we_are_its_remote_is_in_a_circle(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.refusal(508, "LoopDetectedException"))

    with pytest.raises(InCircle):
        await liar.open().load_table(ORDERS)


async def test_a_view_whose_metadata_file_is_missing_is_not_gone(liar: Liar):
    liar.server.says("GET", "/views/orders", lies.refusal(404, "NotFoundException"))

    with pytest.raises(FileMissing):
        await liar.open().load_view(ORDERS)


async def test_what_a_commit_made_is_loaded_where_its_answer_names_no_file(liar: Liar):
    remote = liar.open()
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    base = await remote.load_table(ORDERS)
    assert isinstance(base, RemoteTable)
    address = "https://nessie.example.com/catalog/v1/trees/main/snapshot/orders"
    liar.server.says("POST", "/tables/orders", lies.answer(table_answer(**{"metadata-location": address})))

    committed = await remote.commit_table(setting(ORDERS, base, color="red"))
    assert committed.tag == base.tag

    liar.server.says("GET", "/tables/orders", lies.refusal(503, "ServiceUnavailable"))
    with pytest.raises(OutcomeUnknown):
        await remote.commit_table(setting(ORDERS, base, color="red"))
