"""Requests as clients without keys make them."""

import pytest

from cynosure.storage.access.ports import Signed, StoreRequest
from cynosure.storage.access.s3.signed_files import SignedFiles
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from tests.storage.recorded_service import RecordedService, Reply

pytestmark = pytest.mark.anyio


def make(config: S3Storage) -> tuple[SignedFiles, list[StoreRequest]]:
    asked: list[StoreRequest] = []

    async def sign(request: StoreRequest) -> Signed:
        asked.append(request)
        host = request.uri.partition("://")[2].partition("/")[0]
        return Signed(request.uri, {**request.headers, "host": [host], "authorization": ["signed"]})

    return SignedFiles(config, StorageSettings(), sign), asked


@pytest.mark.parametrize(
    ("changes", "bucket", "uri"),
    [
        ({"endpoint": "http://store:9000", "path_style_access": True}, "b", "http://store:9000/b/a%20b/c"),
        ({"endpoint": "http://store:9000"}, "b", "http://b.store:9000/a%20b/c"),
        ({"endpoint": "https://store"}, "b.c", "https://store/b.c/a%20b/c"),
        ({"region": "eu-west-1"}, "b", "https://b.s3.eu-west-1.amazonaws.com/a%20b/c"),
        ({"region": "cn-north-1"}, "b", "https://b.s3.cn-north-1.amazonaws.com.cn/a%20b/c"),
    ],
)
async def test_the_address_is_the_one_that_clients_are_told(
    changes: dict[str, object], bucket: str, uri: str
) -> None:
    location = Location.parse(f"s3://{bucket}/a b/c")

    async with RecordedService(lambda _: Reply(b"found")) as store:
        config = S3Storage(allowed_locations=(f"s3://{bucket}",), endpoint_internal=store.url, **changes)
        files, asked = make(config)
        read = await files.read(location)

    assert read == b"found"
    assert asked[0].uri == uri
    [heard] = store.heard
    assert uri.endswith(heard.headers["host"] + heard.path), (
        "sent as it was signed, to the server's own address"
    )
    assert heard.headers["authorization"] == "signed"


async def test_a_bulk_deletion_goes_to_the_bucket_with_a_body_that_the_signer_sees() -> None:
    places = [Location.parse(f"s3://b/{name}") for name in ("a&b", "c")]

    async with RecordedService(lambda _: Reply(b"")) as store:
        config = S3Storage(allowed_locations=("s3://b",), endpoint=store.url, path_style_access=True)
        files, asked = make(config)
        await files.delete_many(places)

    [heard] = store.heard
    assert (heard.method, heard.path) == ("POST", "/b?delete")
    assert heard.body.decode() == asked[0].body
    assert "<Key>a&amp;b</Key>" in heard.body.decode()
    assert "content-md5" in heard.headers


async def test_a_refusal_of_the_store_is_told_with_its_status() -> None:
    async with RecordedService(lambda _: Reply(b"", 403)) as store:
        config = S3Storage(allowed_locations=("s3://b",), endpoint=store.url, path_style_access=True)
        files, _ = make(config)
        with pytest.raises(StorageRefused) as refused:
            await files.write(Location.parse("s3://b/x"), b"x")

    assert refused.value.details == {"method": "PUT", "status": 403}
