"""Files in Google Cloud Storage, as far as this can be known without Google.

No emulator takes what obstore sends, so the kit is not bound here. What a request looks like, whom it is sent
to, and what becomes of the answers is asserted against a recorded server.
"""

import re
from pathlib import Path

import obstore
import pytest
from obstore.store import GCSStore

from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists, Misconfigured
from cynosure.common.secrets import Secret
from cynosure.storage.access.tokens import Renewed, Token
from cynosure.storage.backends import gcs as backend
from cynosure.storage.backends.gcs import GcsFileIO
from cynosure.storage.config import GcsStorage
from cynosure.storage.errors import FileMissing, StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from tests.storage.azure_corner import HASTY
from tests.storage.recorded_service import Heard, RecordedService, Reply

pytestmark = pytest.mark.anyio

BASE = Location.parse("gs://bkt/allowed")


async def give_token() -> Token:
    now_ms = SystemClock().now_us() // 1000
    return Token(Secret("token-of-ours"), now_ms, now_ms + 3_600_000)


def open_files(service: RecordedService, settings: StorageSettings | None = None) -> GcsFileIO:
    config = GcsStorage(allowed_locations=(BASE.text,), endpoint=service.url)
    return GcsFileIO(config, Renewed(give_token, SystemClock()), settings or StorageSettings())


def answer(heard: Heard) -> Reply:
    """A bucket with one object of its own."""
    headers = {"etag": '"e"', "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT", "x-goog-generation": "1"}
    match heard.method:
        case "PUT" | "GET" if "list-type" not in heard.path:
            return Reply(b"data" if heard.method == "GET" else b"", headers=headers)
        case "GET":
            return Reply(
                b"<ListBucketResult><Contents><Key>allowed/d/file</Key><Size>4</Size>"
                b"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>e</ETag></Contents>"
                b"</ListBucketResult>"
            )
        case _:
            return Reply(b"", 204)


async def test_every_request_goes_to_the_endpoint_with_our_token_and_names_the_object_as_it_is():
    async with RecordedService(answer) as service:
        fileio = open_files(service)
        odd = BASE.child("a%20b c", "é")
        await fileio.write(odd, b"data")
        assert await fileio.read(odd) == b"data"
        [found] = [each async for each in fileio.list(BASE)]
        await fileio.delete(odd)

    assert [(heard.method, heard.path.partition("?")[0]) for heard in service.heard] == [
        ("PUT", "/bkt/allowed%2Fa%2520b%20c%2F%C3%A9"),
        ("GET", "/bkt/allowed%2Fa%2520b%20c%2F%C3%A9"),
        ("GET", "/bkt"),
        ("DELETE", "/bkt/allowed%2Fa%2520b%20c%2F%C3%A9"),
    ]
    assert {heard.headers["authorization"] for heard in service.heard} == {"Bearer token-of-ours"}
    assert "prefix=allowed%2F" in service.heard[2].path
    assert (found.location, found.size_bytes) == (BASE.child("d", "file"), 4)


async def test_creating_is_conditional_and_overwriting_is_not():
    async with RecordedService(answer) as service:
        fileio = open_files(service)
        await fileio.write(BASE.child("file"), b"data")
        await fileio.write(BASE.child("file"), b"data", overwrite=True)

    created, replaced = service.heard
    assert created.headers["x-goog-if-generation-match"] == "0"
    assert "x-goog-if-generation-match" not in replaced.headers


async def test_what_exists_is_taken_unless_it_holds_the_same_bytes():
    def taken(heard: Heard) -> Reply:
        return (
            Reply(b"<Error><Code>PreconditionFailed</Code></Error>", 412)
            if heard.method == "PUT"
            else answer(heard)
        )

    async with RecordedService(taken) as service:
        await open_files(service).write(BASE.child("file"), b"data")
        with pytest.raises(AlreadyExists):
            await open_files(service).write(BASE.child("file"), b"other")


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, b"<Error><Code>NoSuchKey</Code></Error>", FileMissing),
        (404, b"<Error><Code>NoSuchBucket</Code></Error>", StorageRefused),
        (401, b"<Error><Code>AuthenticationRequired</Code></Error>", StorageRefused),
        (403, b"<Error><Code>AccessDenied</Code><Details>hunter2</Details></Error>", StorageRefused),
        (503, b"<Error><Code>ServiceUnavailable</Code></Error>", StorageUnavailable),
        (429, b"", StorageUnavailable),
    ],
)
async def test_answers_are_sorted_by_their_status(status: int, body: bytes, expected: type[Exception]):
    async with RecordedService(lambda _: Reply(body, status)) as service:
        with pytest.raises(expected) as raised:
            await open_files(service, HASTY).read(BASE.child("file"))

    assert "hunter2" not in str(raised.value)


async def test_deleting_what_is_gone_changes_nothing_and_the_others_are_deleted():
    gone = "/bkt/allowed%2Fgone"

    def delete(heard: Heard) -> Reply:
        return Reply(b"<Error><Code>NoSuchKey</Code></Error>", 404) if heard.path == gone else Reply(b"", 204)

    async with RecordedService(delete) as service:
        await open_files(service).delete_many([BASE.child(name) for name in ("gone", "one", "two")])

    assert {heard.path for heard in service.heard} >= {gone, "/bkt/allowed%2Fone", "/bkt/allowed%2Ftwo"}


async def test_a_bucket_that_does_not_exist_is_refused_when_deleting():
    async with RecordedService(lambda _: Reply(b"<Error><Code>NoSuchBucket</Code></Error>", 404)) as service:
        with pytest.raises(StorageRefused):
            await open_files(service).delete(BASE.child("file"))


async def test_a_token_that_cannot_be_had_is_the_reason():
    async def refuse() -> Token:
        raise StorageRefused("The service account is not welcome")

    async with RecordedService(answer) as service:
        config = GcsStorage(allowed_locations=(BASE.text,), endpoint=service.url)
        fileio = GcsFileIO(config, Renewed(refuse, SystemClock()), StorageSettings())
        with pytest.raises(StorageRefused, match="not welcome"):
            await fileio.read(BASE.child("file"))

    assert service.heard == []


# --- the environment ------------------------------------------------------------------------------------


@pytest.fixture
def poisoned(trap: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """Environment, home directory and instance metadata that all lead into the trap."""
    url, heard = trap
    gcloud = tmp_path / ".config" / "gcloud"
    gcloud.mkdir(parents=True)
    login = f'{{"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "{url}"}}'
    (gcloud / "application_default_credentials.json").write_text(login)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(gcloud))
    for name in ("METADATA_HOST", "METADATA_IP", "METADATA_ROOT"):
        monkeypatch.setenv(f"GCE_{name}", url.removeprefix("http://"))
    values = {
        "base_url": url,
        "skip_signature": "true",
        "application_credentials": str(gcloud / "application_default_credentials.json"),
        "allow_http": "false",
        "proxy_url": url,
        "timeout": "1ms",
        "connect_timeout": "1ns",
        "user_agent": "poison",
    }
    for name in documented_options() | set(values):
        if not name.startswith("service_account"):
            monkeypatch.setenv(f"GOOGLE_{name.upper()}", values.get(name, "poison"))
    return heard


def documented_options() -> set[str]:
    stub = (Path(obstore.__file__).parent / "_store" / "_gcs.pyi").read_text()
    options = stub.partition("class GCSConfig(")[2].partition("\nclass ")[0]
    return set(re.findall(r"^    ([a-z]\w+): ", options, re.MULTILINE))


async def test_neither_environment_nor_home_nor_instance_metadata_is_consulted(poisoned: list[bytes]):
    async with RecordedService(answer) as service:
        fileio = open_files(service)
        await fileio.write(BASE.child("file"), b"data")
        await fileio.read(BASE.child("file"))
        await fileio.delete(BASE.child("file"))

    assert poisoned == []
    assert [heard.headers["authorization"] for heard in service.heard] == ["Bearer token-of-ours"] * 3
    assert not any("poison" in str(heard).lower() for heard in service.heard)


async def test_the_trap_does_catch_a_client_that_is_not_ours(poisoned: list[bytes]):
    """Without what `open_bucket` does, obstore walks into it; so the test above can fail."""
    careless = GCSStore("bkt", client_options={"allow_http": True}, retry_config={"max_retries": 0})

    with pytest.raises(obstore.exceptions.BaseError):
        await obstore.get_async(careless, "file")

    assert poisoned


@pytest.mark.parametrize("name", backend._UNWELCOME)
def test_variables_that_cannot_be_overridden_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.setenv(name, "x")

    with pytest.raises(Misconfigured, match=name):
        open_one()


def test_every_option_that_obstore_knows_is_set_or_refused():
    """A new version of obstore may take a new variable from the environment."""
    refused = {name.removeprefix("GOOGLE_").lower() for name in backend._UNWELCOME}
    store = open_one()

    assert len(documented_options()) > 5
    assert documented_options() - set(store.config) - refused == set()
    assert store.config["base_url"] == "https://storage.googleapis.com"


def open_one() -> GCSStore:
    config = GcsStorage(allowed_locations=(BASE.text,))
    return backend.open_bucket("bkt", config, Renewed(give_token, SystemClock()), StorageSettings())
