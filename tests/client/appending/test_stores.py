"""Stores with credentials of the catalog: which are used, when newer ones are asked for, what is told."""

import asyncio
import io
import tempfile
import threading
import time
from typing import Any

import pytest

from cynosure.client.appending.signed_files import Signed
from cynosure.client.appending.stores import Access, LocalFiles, open_files
from cynosure.client.appending.target import StorageCredential
from cynosure.common.errors import BadInput, Forbidden, NotFound, Unavailable
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.storage.recorded_service import RecordedService, Reply

pytestmark = pytest.mark.anyio


async def no_newer() -> list[StorageCredential]:
    raise AssertionError("nobody asks")


async def no_signature(wanted: dict[str, Any]) -> Signed:
    raise AssertionError("nobody asks")


@pytest.fixture
def minio() -> S3Server:
    return find_s3_servers()["minio"]


def make_access(server: S3Server, place: str, *, expires_s: float, renew: Any) -> Access:
    config = {
        "client.region": server.region,
        "s3.endpoint": server.endpoint,
        "s3.path-style-access": "true",
    }
    return Access(config, [make_credential(server, place, expires_s)], renew, no_signature)


def make_credential(server: S3Server, place: str, expires_s: float) -> StorageCredential:
    return StorageCredential(
        place,
        {
            "s3.access-key-id": server.access_key_id,
            "s3.secret-access-key": server.secret_access_key,
            "s3.session-token-expires-at-ms": str(int((time.time() + expires_s) * 1000)),
        },
    )


@pytest.mark.s3
@pytest.mark.parametrize(("expires_s", "renewals"), [(3600, 0), (-1, 1)])
async def test_newer_credentials_are_asked_for_before_the_old_ones_end(
    minio: S3Server, expires_s: float, renewals: int
) -> None:
    place = minio.fresh_location("stores")
    asked = []

    async def renew() -> list[StorageCredential]:
        asked.append(1)
        return [make_credential(minio, place, 3600)]

    files = open_files(place, make_access(minio, place, expires_s=expires_s, renew=renew))
    try:
        for number in range(3):
            await files.write(f"{place}/{number}", io.BytesIO(b"abc"))
        assert len(asked) == renewals
        assert await files.has(f"{place}/2", 3)
        assert not await files.has(f"{place}/2", 4)
        await files.delete([f"{place}/{number}" for number in range(4)])
        assert not await files.has(f"{place}/2", 3)
    finally:
        minio.delete_below(place)


@pytest.mark.s3
async def test_a_large_file_is_written_and_read_in_parts(minio: S3Server) -> None:
    place = minio.fresh_location("stores")
    files = open_files(place, make_access(minio, place, expires_s=3600, renew=no_newer))
    data = bytes(range(256)) * 50_000
    try:
        with tempfile.SpooledTemporaryFile(2**20) as content:
            content.write(data)
            content.seek(0)
            await files.write(f"{place}/large", content)
        into = io.BytesIO()
        assert await files.read(f"{place}/large", into) == len(data)
        assert into.getvalue() == data
        with pytest.raises(NotFound) as refused:
            await files.read(f"{place}/none", into)
        assert refused.value.details["location"] == f"{place}/none"
    finally:
        minio.delete_below(place)


@pytest.mark.s3
async def test_a_refusal_of_the_store_shows_no_key(minio: S3Server) -> None:
    place = minio.fresh_location("stores")
    wrong = StorageCredential(
        place, {"s3.access-key-id": minio.access_key_id, "s3.secret-access-key": "not-the-secret-at-all"}
    )
    access = make_access(minio, place, expires_s=3600, renew=no_newer)
    files = open_files(place, Access(access.config, [wrong], no_newer, no_signature))

    with pytest.raises((Forbidden, Unavailable)) as refused:
        await files.write(f"{place}/x", io.BytesIO(b"abc"))

    told = f"{refused.value} {refused.value.__cause__}"
    assert minio.access_key_id not in told
    assert "not-the-secret-at-all" not in told


@pytest.mark.parametrize(
    "place", ["s3://bucket/t10/data", "gs://bucket/t", "abfss://c@a.dfs.core.windows.net/t"]
)
async def test_credentials_of_another_place_are_not_used(place: str) -> None:
    other = StorageCredential("s3://bucket/t1", {"s3.access-key-id": "a", "s3.secret-access-key": "b"})

    with pytest.raises(Forbidden, match="no credentials"):
        open_files(place, Access({}, [other], no_newer, no_signature))


async def test_stores_of_other_kinds_are_told() -> None:
    with pytest.raises(BadInput) as refused:
        open_files("hdfs://there/t", Access({}, [], no_newer, no_signature))
    assert refused.value.details["location"] == "hdfs://there/t"


async def test_local_files_that_cannot_be_written_are_told(tmp_path: Any) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Unavailable, match="cannot be written"):
        await LocalFiles().write(f"file://{tmp_path}/file/below", io.BytesIO(b"abc"))


async def test_a_local_file_that_cannot_be_looked_at_is_not_there() -> None:
    # Nor can one of another user's, which this user may be root to.
    assert not await LocalFiles().has(f"file:///tmp/{'x' * 300}", 3)


async def test_a_local_file_may_have_the_longest_name(tmp_path: Any) -> None:
    path = tmp_path / f"{'x' * 247}.parquet"

    await LocalFiles().write(f"file://{path}", io.BytesIO(b"abc"))

    assert await LocalFiles().has(f"file://{path}", 3)


async def test_a_local_file_may_be_written_twice_at_once(tmp_path: Any) -> None:
    content = bytes(4 * 2**20)
    path = tmp_path / "file"

    await asyncio.gather(*(LocalFiles().write(f"file://{path}", io.BytesIO(content)) for _ in range(8)))

    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


class Slow(io.BytesIO):
    """Whose end is reached only when somebody says so."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.is_read = threading.Event()
        self.may_end = threading.Event()

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = super().read(size)
        if not chunk:
            self.is_read.set()
            self.may_end.wait(10)
        return chunk


async def test_a_local_file_whose_writing_is_cancelled_does_not_come_behind_its_deletion(
    tmp_path: Any,
) -> None:
    location, content = f"file://{tmp_path}/file", Slow(b"abc")
    writing = asyncio.create_task(LocalFiles().write(location, content))
    await asyncio.to_thread(content.is_read.wait, 10)

    writing.cancel()
    asyncio.get_running_loop().call_later(0.05, content.may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await writing
    await LocalFiles().delete([location])

    # As long as a thread would need that was not waited for.
    await asyncio.sleep(0.2)
    assert list(tmp_path.iterdir()) == []


def test_credentials_do_not_print() -> None:
    secret = StorageCredential("s3://b/t", {"s3.secret-access-key": "hidden-one"})

    shown = f"{secret!r} {Access({'token': 'hidden-one'}, [secret], no_newer, no_signature)!r}"

    assert "hidden-one" not in shown


async def test_a_token_of_google_is_what_is_sent() -> None:
    """Asserted, not exercised: there is no storage of Google's here."""
    given = StorageCredential("gs://bkt/lake/t", {"gcs.oauth2.token": "downscoped"})

    async with RecordedService(lambda _: Reply(b"", headers={"etag": '"e"'})) as google:
        files = open_files(
            "gs://bkt/lake/t/data", Access({"gcs.service.host": google.url}, [given], no_newer, no_signature)
        )
        await files.write("gs://bkt/lake/t/data/x=1/file.parquet", io.BytesIO(b"abc"))

    [heard] = google.heard
    assert heard.path.endswith("/bkt/lake/t/data/x=1/file.parquet") or "x%3D1" in heard.path
    assert heard.headers["authorization"] == "Bearer downscoped"


async def test_who_may_not_list_is_told_by_writing_whether_a_file_is_there() -> None:
    """S3 answers 403 for what is not there. Asserted here: the stores of these tests answer 404."""
    given = StorageCredential("s3://bkt/t", {"s3.access-key-id": "a", "s3.secret-access-key": "b"})

    async with RecordedService(lambda _: Reply(b"", 403)) as s3:
        config = {"s3.endpoint": s3.url, "s3.path-style-access": "true"}
        files = open_files("s3://bkt/t", Access(config, [given], no_newer, no_signature))
        assert not await files.has("s3://bkt/t/x", 3)
        with pytest.raises(Forbidden):
            await files.write("s3://bkt/t/x", io.BytesIO(b"abc"))
        with pytest.raises(Forbidden, match="not there any more"):
            await files.read("s3://bkt/t/x", io.BytesIO())


async def test_a_signature_of_azure_is_what_is_sent() -> None:
    place = "abfss://lake@account.dfs.core.windows.net/t"
    given = StorageCredential(place, {"adls.sas-token": "sv=2024&sig=abc"})

    async with RecordedService(lambda _: Reply(b"", 201, headers={"etag": '"e"'})) as azure:
        config = {
            "adls.account-name": "account",
            "adls.blob-storage-authority": azure.url.removeprefix("http://"),
            "adls.blob-storage-scheme": "http",
        }
        files = open_files(f"{place}/data", Access(config, [given], no_newer, no_signature))
        await files.write(f"{place}/data/file.parquet", io.BytesIO(b"abc"))

    [heard] = azure.heard
    assert heard.path.partition("?")[0] == "/account/lake/t/data/file.parquet"
    assert "sig=abc" in f"{heard}"
    assert "authorization" not in heard.headers
