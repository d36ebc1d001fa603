"""What real stores hold a client to that has a signature: of a session, or of keys that reach everything."""

import base64
import hashlib
from collections.abc import Callable

import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.storage.access.vending import Vending
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.vendor_kit import Denied

from .signed_corner import SignedCorner
from .sts_corner import StsCorner


@pytest.fixture
def plain(plain_s3_server: S3Server) -> SignedCorner:
    """A store without a token service: signed with keys that reach everything."""
    return SignedCorner(plain_s3_server, Location.parse(plain_s3_server.fresh_location()))


@pytest.fixture
def scoped(sts: StsCorner) -> SignedCorner:
    """A store with one: signed with a session of the table."""
    return SignedCorner(sts.server, sts.base, Vending(sts.vendor(), SystemClock(), kind="s3"))


@pytest.fixture
def unscoped(sts: StsCorner) -> SignedCorner:
    """The same store, with keys that reach everything."""
    return SignedCorner(sts.server, sts.base)


async def use_files(corner: SignedCorner) -> None:
    client = corner.client()
    file, other = corner.table.child("data", "a b=1+2", "ü.parquet"), corner.table.child("b")
    await client.put(file, b"rows")
    await client.copy(file, other)
    assert await client.get(other) == b"rows"
    prefix = "/".join(corner.table.segments) + "/"
    assert len(await client.list(corner.table, prefix)) == 2
    await client.delete(file)
    with pytest.raises(ClientError, match="NoSuchKey"):
        await client.get(file)


@pytest.mark.anyio
async def test_a_client_without_keys_uses_files_of_a_plain_store(
    plain: SignedCorner,
) -> None:
    await use_files(plain)


@pytest.mark.anyio
async def test_a_client_without_keys_uses_files_with_a_session_of_the_table(scoped: SignedCorner) -> None:
    await use_files(scoped)
    await scoped.client().put(scoped.table.child("c"), b"rows")

    assert await scoped.client().delete_many([scoped.table.child("b"), scoped.table.child("c")]) == []


def send_another_body(key: Location) -> Callable[[AWSRequest], None]:
    """Keep the signature, and name another key."""
    text = f"<Delete><Object><Key>{'/'.join(key.segments)}</Key></Object></Delete>"

    def change(request: AWSRequest) -> None:
        if request.method == "POST":
            request.data = text.encode()
            del request.headers["content-md5"]
            digest = hashlib.md5(text.encode()).digest()
            request.headers["content-md5"] = base64.b64encode(digest).decode()

    return change


def add_copy_source(source: Location) -> Callable[[AWSRequest], None]:
    """Keep the signature, and have another file copied."""

    def change(request: AWSRequest) -> None:
        if request.method == "PUT":
            request.headers["x-amz-copy-source"] = f"/{source.authority}/{'/'.join(source.segments)}"

    return change


@pytest.mark.anyio
async def test_another_body_than_the_signed_one_deletes_nothing_elsewhere(
    scoped: SignedCorner,
) -> None:
    secret, own = scoped.other.child("secret"), scoped.table.child("own")
    await scoped.owner.put(secret, b"kept")

    refused = await scoped.client(send_another_body(secret)).delete_many([own])

    assert refused == ["/".join(secret.segments)]
    assert await scoped.owner.get(secret) == b"kept"


@pytest.mark.anyio
async def test_a_header_added_after_signing_copies_nothing_from_elsewhere(
    scoped: SignedCorner,
) -> None:
    secret, stolen = scoped.other.child("secret"), scoped.table.child("stolen")
    await scoped.owner.put(secret, b"secret")

    with pytest.raises((Denied, ClientError), match=r"AccessDenied|SignatureDoesNotMatch"):
        await scoped.client(add_copy_source(secret)).put(stolen, b"")

    with pytest.raises(ClientError, match="NoSuchKey"):
        await scoped.owner.get(stolen)


@pytest.mark.anyio
async def test_bulk_deletions_are_not_signed_for_a_store_that_does_not_check_their_bodies(
    plain: SignedCorner,
) -> None:
    secret, own = plain.other.child("secret"), plain.table.child("own")
    await plain.owner.put(secret, b"kept")

    with pytest.raises(StorageRefused, match="bulk deletions are not signed"):
        await plain.client(send_another_body(secret)).delete_many([own])

    assert await plain.owner.get(secret) == b"kept"


@pytest.mark.anyio
async def test_with_keys_that_reach_everything_nothing_is_signed_that_a_store_lets_change(
    unscoped: SignedCorner,
) -> None:
    secret, stolen = unscoped.other.child("secret"), unscoped.table.child("stolen")
    await unscoped.owner.put(secret, b"secret")

    # One server refuses the signature that does not cover the header; for the other, we do not sign.
    with pytest.raises((StorageRefused, ClientError), match=r"writes are not signed|SignatureDoesNotMatch"):
        await unscoped.client(add_copy_source(secret)).put(stolen, b"")
    with pytest.raises(StorageRefused):
        await unscoped.client().delete_many([stolen])

    with pytest.raises(ClientError, match="NoSuchKey"):
        await unscoped.owner.get(stolen)


@pytest.mark.anyio
async def test_reads_are_signed_whatever_a_store_checks(unscoped: SignedCorner) -> None:
    file = unscoped.table.child("a")
    await unscoped.owner.put(file, b"rows")

    assert await unscoped.client().get(file) == b"rows"


@pytest.mark.anyio
async def test_trials_leave_nothing_in_the_table(plain: SignedCorner) -> None:
    with pytest.raises(StorageRefused):
        await plain.client().delete_many([plain.table.child("a")])

    assert await plain.owner.list(plain.table, "/".join(plain.table.segments) + "/") == []


@pytest.mark.anyio
async def test_a_store_that_does_not_answer_is_tried_again(plain: SignedCorner) -> None:
    corner = SignedCorner(replace(plain.server, endpoint="http://127.0.0.1:1"), plain.table)

    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            await corner.client().put(corner.table.child("a"), b"")


@pytest.mark.anyio
async def test_where_a_session_cannot_express_a_name_the_store_must_check(scoped: SignedCorner) -> None:
    scoped.table = scoped.table.child("star*")
    file = scoped.table.child("a")
    await scoped.owner.put(file, b"rows")

    assert await scoped.client().get(file) == b"rows"
    with pytest.raises(StorageRefused, match="bulk deletions are not signed"):
        await scoped.client().delete_many([file])
