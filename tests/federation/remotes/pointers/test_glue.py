"""What only Glue does: signatures, versions, its own errors."""

import json
import random
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from cynosure.catalog.connection import ConnectionSecrets
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.common.clock import SystemClock
from cynosure.common.errors import OutcomeUnknown
from cynosure.federation.errors import RemoteConflict, RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.pointers import PointerCatalog
from cynosure.federation.remote import RemoteTable
from cynosure.federation.remotes.glue import open_glue
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import Delay, ReplaceAnswer, Request, Respond, client_sends
from cynosure.testing.pointer_kit import COLUMNS, place
from cynosure.testing.remote_samples import Stage, plan_table, setting
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import HASTY, GlueCorner, Proxies
from tests.federation.remotes.pointers.lakes import open_lake

pytestmark = [pytest.mark.anyio, pytest.mark.glue]


@pytest.fixture
async def proxy(glue: GlueCorner, fault_proxy: Proxies) -> FaultProxy:
    return await fault_proxy(glue.url)


@pytest.fixture
async def pointers(glue: GlueCorner, proxy: FaultProxy) -> AsyncIterator[PointerCatalog]:
    opened = glue.open(proxy.url)
    yield opened
    await opened.close()


@pytest.fixture
async def table(pointers: PointerCatalog) -> Identifier:
    namespace = (f"glue_{uuid.uuid4().hex[:12]}",)
    await pointers.create_namespace(namespace, {})
    return Identifier(namespace, "orders")


def refuse(proxy: FaultProxy, action: str, kind: str, status: int = 400) -> None:
    body = json.dumps({"__type": kind, "message": "words of the remote"}).encode()
    proxy.add(Respond(status, body), when=client_sends(f"AWSGlue.{action}".encode()))


def hear(proxy: FaultProxy) -> list[Request]:
    """All requests from now on."""
    heard: list[Request] = []

    def note(request: Request) -> bool:
        heard.append(request)
        return False

    proxy.add(Delay(), when=note, times=None)
    return heard


def parse(request: Request) -> tuple[dict[str, str], bytes]:
    head, _, body = request.data.partition(b"\r\n\r\n")
    lines = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
    return {name.decode().lower(): value.decode() for name, _, value in lines}, body


async def test_every_update_names_the_version_it_was_made_from(
    pointers: PointerCatalog, proxy: FaultProxy, table: Identifier, glue: GlueCorner
):
    await pointers.create(table, place("first"), COLUMNS)
    first = await pointers.find(table)
    heard = hear(proxy)

    await pointers.swap(table, first, place("second"), COLUMNS)

    [update] = [parse(each)[1] for each in heard if b"AWSGlue.UpdateTable" in each.data]
    assert first.version is not None
    assert json.loads(update)["VersionId"] == first.version
    assert (await pointers.find(table)).version != first.version


async def test_requests_are_signed_as_amazons_own_client_signs_them(
    pointers: PointerCatalog, proxy: FaultProxy, table: Identifier, glue: GlueCorner
):
    heard = hear(proxy)
    await pointers.load_namespace(table.namespace)

    headers, body = parse(heard[-1])
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    oracle = AWSRequest(
        "POST",
        f"http://{headers['host']}/",
        data=body,
        headers={name: headers[name] for name in signed if name != "x-amz-date"},
    )
    oracle.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(glue.key, glue.secret), "glue", glue.region)
    oracle.headers["X-Amz-Date"] = headers["x-amz-date"]
    canonical = signer.canonical_request(oracle)
    signature = signer.signature(signer.string_to_sign(oracle, canonical), oracle)

    assert set(signed) == {"content-type", "host", "x-amz-date", "x-amz-target"}
    assert headers["authorization"].endswith(f"Signature={signature}")


@pytest.mark.parametrize("kind", ["ConcurrentModificationException", "VersionMismatchException"])
async def test_another_version_is_a_conflict(
    pointers: PointerCatalog, proxy: FaultProxy, table: Identifier, kind: str
):
    first = await pointers.create(table, place("first"), COLUMNS)
    refuse(proxy, "UpdateTable", kind)

    with pytest.raises(RemoteConflict):
        await pointers.swap(table, first, place("second"), COLUMNS)


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("AccessDeniedException", 400, RemoteRefused),
        ("UnrecognizedClientException", 400, RemoteRefused),
        ("InvalidInputException", 400, RemoteRefused),
        ("ThrottlingException", 400, RemoteUnavailable),
        ("OperationTimeoutException", 400, OutcomeUnknown),
        ("InternalServiceException", 500, OutcomeUnknown),
        ("ServiceUnavailable", 503, OutcomeUnknown),
    ],
)
async def test_what_an_error_of_a_change_means(
    pointers: PointerCatalog,
    proxy: FaultProxy,
    table: Identifier,
    kind: str,
    status: int,
    expected: type[Exception],
):
    first = await pointers.create(table, place("first"), COLUMNS)
    refuse(proxy, "UpdateTable", f"com.amazonaws.glue#{kind}", status)

    with pytest.raises(expected) as raised:
        await pointers.swap(table, first, place("second"), COLUMNS)

    assert type(raised.value) is expected
    assert "words of the remote" not in str(raised.value)


@pytest.mark.s3
@pytest.mark.parametrize("status", [400, 500])
async def test_a_change_that_glue_stumbles_over_is_looked_up_and_closes_the_catalog_to_nobody(
    glue: GlueCorner,
    pointers: PointerCatalog,
    proxy: FaultProxy,
    table: Identifier,
    minio: S3Server,
    tmp_path: Path,
    status: int,
):
    kind = "OperationTimeoutException" if status == 400 else "InternalServiceException"
    body = json.dumps({"__type": kind}).encode()
    async with open_lake(tmp_path, glue, minio, minio.fresh_location("pointers")) as catalog:
        remote = PointerRemote(pointers, catalog)
        settings = FederationSettings(break_after=2, retries=0)
        guarded = GuardedRemote("near", lambda: remote, settings, SystemClock(), random.Random(1))
        await guarded.create_table(plan_table(Stage(remote, catalog.base.text), table))
        first = await guarded.load_table(table)
        assert isinstance(first, RemoteTable)
        # Not made, and nobody can know.
        proxy.add(Respond(status, body), when=client_sends(b"AWSGlue.UpdateTable"), times=4)
        for _ in range(4):
            with pytest.raises(OutcomeUnknown):
                await guarded.commit_table(setting(table, first, color="red"))
        assert guarded.health().breaker == "closed"
        # Made, and found to be.
        # As the server behind it ends the connection, so must what is in its place.
        answer = ReplaceAnswer(status, body, (("connection", "close"),))
        rule = proxy.add(answer, when=client_sends(b"AWSGlue.UpdateTable"))
        await guarded.commit_table(setting(table, first, color="blue"))
        now = await guarded.load_table(table)

        assert rule.hits == 1
        assert isinstance(now, RemoteTable)
        assert now.metadata.properties["color"] == "blue"
        assert guarded.health().breaker == "closed"


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("AccessDeniedException", 400, RemoteRefused),
        ("ThrottlingException", 400, RemoteUnavailable),
        ("InternalServiceException", 500, RemoteUnavailable),
    ],
)
async def test_what_an_error_of_a_look_means(
    pointers: PointerCatalog,
    proxy: FaultProxy,
    table: Identifier,
    kind: str,
    status: int,
    expected: type[Exception],
):
    refuse(proxy, "GetTable", kind, status)

    with pytest.raises(expected) as raised:
        await pointers.find(table)

    assert type(raised.value) is expected


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"Table": []}', b'{"Table": {"Name": "other"}}', b""])
async def test_an_answer_that_is_none_is_the_remotes_fault(
    pointers: PointerCatalog, proxy: FaultProxy, table: Identifier, body: bytes
):
    proxy.add(Respond(200, body), when=client_sends(b"AWSGlue.GetTable"))

    with pytest.raises(RemoteMisbehaved):
        await pointers.find(table)


async def test_a_table_without_a_version_is_not_changed(
    pointers: PointerCatalog, proxy: FaultProxy, table: Identifier
):
    first = await pointers.create(table, place("first"), COLUMNS)
    shown = {
        "Name": table.name,
        "Parameters": {"table_type": "ICEBERG", "metadata_location": first.metadata_location},
    }
    proxy.add(Respond(200, json.dumps({"Table": shown}).encode()), when=client_sends(b"AWSGlue.GetTable"))
    heard = hear(proxy)

    with pytest.raises(RemoteMisbehaved):
        await pointers.swap(table, first, place("second"), COLUMNS)

    assert not [each for each in heard if b"UpdateTable" in each.data]


async def test_a_rename_that_a_change_overtakes_is_taken_back(
    pointers: PointerCatalog, proxy: FaultProxy, table: Identifier, glue: GlueCorner
):
    first = await pointers.create(table, place("first"), COLUMNS)
    target = Identifier(table.namespace, "renamed")
    other, near = place("second"), glue.open()
    rename = pointers.rename
    create = pointers._create

    async def create_slowly(*arguments: object) -> None:
        await create(*arguments)
        await near.swap(table, first, other, COLUMNS)

    pointers._create = create_slowly

    with pytest.raises(RemoteConflict):
        await rename(table, target)

    assert (await near.list_tables(table.namespace, token=None, size=10)).names == ["orders"]
    assert (await near.find(table)).metadata_location == other.metadata_location
    await near.close()


async def test_a_rename_that_another_one_overtakes_leaves_no_second_table(
    pointers: PointerCatalog, table: Identifier, glue: GlueCorner
):
    first = await pointers.create(table, place("first"), COLUMNS)
    near, delete = glue.open(), pointers._delete

    async def delete_slowly(*arguments: object) -> None:
        pointers._delete = delete
        await near.rename(table, Identifier(table.namespace, "overtaking"))
        await delete(*arguments)

    pointers._delete = delete_slowly

    with pytest.raises(NoSuchTable):
        await pointers.rename(table, Identifier(table.namespace, "overtaken"))

    assert (await near.list_tables(table.namespace, token=None, size=10)).names == ["overtaking"]
    found = await near.find(Identifier(table.namespace, "overtaking"))
    assert found.metadata_location == first.metadata_location
    await near.close()


async def test_a_rename_that_cannot_be_taken_back_is_not_told_as_not_done(
    pointers: PointerCatalog, proxy: FaultProxy, table: Identifier
):
    await pointers.create(table, place("first"), COLUMNS)
    for _ in ("the old name", "the new one"):
        refuse(proxy, "DeleteTable", "ThrottlingException")

    with pytest.raises(OutcomeUnknown):
        await pointers.rename(table, Identifier(table.namespace, "renamed"))

    assert (await pointers.list_tables(table.namespace, token=None, size=10)).names == ["orders", "renamed"]


def test_without_keys_there_is_no_client(glue: GlueCorner):
    with pytest.raises(RemoteUnavailable):
        open_glue(glue.connection, ConnectionSecrets(), HASTY, SystemClock(), "near")
