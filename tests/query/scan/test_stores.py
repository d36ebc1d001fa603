"""Files in real stores, with credentials as a catalog gives them; nothing else opens anything."""

import asyncio
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.common.delegated.settings import SparkSettings
from cynosure.query.errors import NotReadable
from cynosure.query.scan import governed
from cynosure.query.scan.governed import governed_batches
from cynosure.query.scan.port import ScanProgress
from cynosure.query.scan_task import Credentials, ScanTask
from cynosure.spark.environment import make_environment
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.scan_kit import read_table, reference, task_from_arrow
from tests.engines.poison import POISON
from tests.query.scan.written import write_positions
from tests.storage.azure_corner import AzureCorner
from tests.storage.conftest import azure
from tests.storage.test_as_client import vend
from tests.storage.test_open_vended import give

__all__ = ["azure"]

TABLE = pa.table(
    {"id": pa.array(range(3_000), pa.int64()), "name": [f"name {each}" for each in range(3_000)]}
)


def upload(server: S3Server, directory: Path, **others: Any) -> ScanTask:
    """A task whose files are in a store, with credentials for their place only."""
    task = task_from_arrow(directory, TABLE, files=2, row_group_rows=500, **others)
    place = server.fresh_location("scan")
    bucket = server.open_bucket()
    files = []
    for file in task.files:
        path = Path(file.path)
        key = f"{Location.parse(place).child(path.name)}"
        obstore.put(bucket, "/".join(Location.parse(key).segments), path.read_bytes())
        files.append(replace(file, path=key))
    properties = asyncio.run(give(server, Location.parse(place), writable=False))
    return replace(
        task,
        files=tuple(files),
        places=(place,),
        file_roots=(),
        credentials=Credentials(number=1, properties=properties),
    )


def test_files_in_s3(sts_server: S3Server, tmp_path: Path, only_fast: None) -> None:
    task = upload(sts_server, tmp_path)
    assert read_table(task) == TABLE
    filtered = upload(sts_server, tmp_path, row_filter=reference("lt", 1, 10))
    assert read_table(filtered).num_rows == 10


def test_a_role_of_the_machine_is_not_used(
    sts_server: S3Server, tmp_path: Path, only_fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_SESSION_NAME", "AWS_PROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    monkeypatch.setenv("AWS_REGION", "mars-1")
    assert read_table(upload(sts_server, tmp_path)) == TABLE


def test_what_drivers_of_spark_have_around_them_keeps_no_file_off_the_fast_path(
    sts_server: S3Server, tmp_path: Path, only_fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {name: value for name, value in make_environment({}, SparkSettings()).items() if "AWS_" in name}
    assert given
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert read_table(upload(sts_server, tmp_path)) == TABLE


def test_the_complete_path_in_s3(sts_server: S3Server, tmp_path: Path, without_fast: Any) -> None:
    task = upload(sts_server, tmp_path)
    watch = Watch(task.credentials)
    with without_fast():
        assert sum(each.num_rows for each in governed_batches(task, watch)) == 3_000
    assert watch.last.bytes == task.total_bytes


class Watch:
    """Whatever credentials are given to it."""

    def __init__(self, *given: Credentials) -> None:
        self._given = list(given)
        self.last = ScanProgress()

    def credentials(self) -> Credentials:
        return self._given.pop(0) if len(self._given) > 1 else self._given[0]

    def advance(self, progress: ScanProgress) -> None:
        self.last = progress


@pytest.mark.parametrize("way", ["fast", "complete"])
def test_newer_credentials_are_taken_between_files(
    way: str, sts_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "complete":
        monkeypatch.setattr(governed, "read_fast", lambda *_: None)
    task = upload(sts_server, tmp_path)
    wrong = {**task.credentials.properties, "s3.secret-access-key": "wrong"}
    good = task.credentials.properties
    # The first ones are of no use; the newest win, whatever comes after them.
    begun = replace(task, credentials=Credentials(1, wrong))
    watch = Watch(Credentials(2, good), Credentials(1, wrong))
    assert sum(each.num_rows for each in governed_batches(begun, watch)) == 3_000
    with pytest.raises(StorageRefused) as failed:
        list(governed_batches(task, Watch(Credentials(2, good), Credentials(3, wrong))))
    assert task.places[0] not in str(failed.value)


def test_credentials_open_their_place_only(sts_server: S3Server, tmp_path: Path) -> None:
    mine, other = upload(sts_server, tmp_path / "a"), upload(sts_server, tmp_path / "b")
    # What the task calls its places is not what the credentials are for.
    swapped = replace(other, credentials=mine.credentials)
    with pytest.raises(StorageRefused) as failed:
        read_table(swapped)
    assert other.places[0] not in str(failed.value)
    assert "secret" not in str(failed.value).lower()


def test_nothing_of_the_environment_opens_a_store(
    sts_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = upload(sts_server, tmp_path)
    for name, value in POISON.items():
        monkeypatch.setenv(name, value)
    assert read_table(task) == TABLE
    # And what would open it does not, when the task has nothing.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", sts_server.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", sts_server.secret_access_key)
    bare = {
        name: value
        for name, value in task.credentials.properties.items()
        if "key" not in name and "token" not in name
    }
    with pytest.raises(StorageRefused, match="no credentials"):
        read_table(replace(task, credentials=Credentials(1, bare)))


def test_files_that_are_gone_or_shorter(plain_s3_server: S3Server, tmp_path: Path) -> None:
    local = task_from_arrow(tmp_path, TABLE)
    place = plain_s3_server.fresh_location("scan")
    key = "/".join(Location.parse(place).child("f.parquet").segments)
    server = plain_s3_server
    properties = {
        "s3.access-key-id": server.access_key_id,
        "s3.secret-access-key": server.secret_access_key,
        "s3.endpoint": server.endpoint,
        "client.region": server.region,
        "s3.path-style-access": "true",
    }
    task = replace(
        local,
        files=(replace(local.files[0], path=f"{place}/f.parquet"),),
        places=(place,),
        credentials=Credentials(1, properties),
    )
    with pytest.raises(NotReadable, match="gone"):
        read_table(task)
    content = Path(local.files[0].path).read_bytes()
    obstore.put(server.open_bucket(), key, content[:-500])
    with pytest.raises(NotReadable):
        read_table(task)
    obstore.put(server.open_bucket(), key, content)
    assert read_table(task) == TABLE
    away = {**properties, "s3.endpoint": "http://127.0.0.1:9"}
    hasty = {"connect_timeout_s": 0.3, "operation_timeout_s": 1, "retries": 0}
    with pytest.raises(StorageUnavailable):
        read_table(replace(task, credentials=Credentials(1, away), storage=hasty))


def test_deletes_in_a_store(sts_server: S3Server, tmp_path: Path) -> None:
    task = upload(sts_server, tmp_path)
    deletes = write_positions(tmp_path / "d", [(task.files[0].path, each) for each in range(100)])
    key = f"{task.places[0]}/d.parquet"
    obstore.put(
        sts_server.open_bucket(), "/".join(Location.parse(key).segments), (tmp_path / "d").read_bytes()
    )
    deleting = replace(
        task,
        deletes=(replace(deletes, path=key),),
        files=(replace(task.files[0], deletes=(0,)), task.files[1]),
    )
    assert read_table(deleting).column("id").to_pylist() == list(range(100, 3_000))


@pytest.mark.anyio
async def test_files_in_azure_with_its_own_authority(azure: AzureCorner, tmp_path: Path) -> None:
    task = task_from_arrow(tmp_path, TABLE)
    place = azure.base.child("f.parquet")
    await azure.open().write(place, Path(task.files[0].path).read_bytes())
    vended = await vend(azure, is_writable=False)
    scheme, _, authority = (azure.config.endpoint or "").partition("://")
    properties = dict(vended.credentials[0].config) | {
        "adls.blob-storage-authority": authority.removesuffix("/"),
        "adls.blob-storage-scheme": scheme,
    }
    assert azure.settings.ca_file
    there = replace(
        task,
        files=(replace(task.files[0], path=place.text),),
        places=(azure.base.text,),
        file_roots=(),
        credentials=Credentials(1, properties, vended.expires_ms),
        storage={"ca_pem": azure.settings.ca_file.read_text(), "operation_timeout_s": 60},
    )
    assert await asyncio.to_thread(read_table, there) == TABLE
    with pytest.raises(StorageUnavailable):
        await asyncio.to_thread(read_table, replace(there, storage={"operation_timeout_s": 3, "retries": 0}))
