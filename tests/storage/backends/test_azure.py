"""The kit on Azurite, and what only a network and a login service can do to us."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from msgspec.structs import replace
from obstore.store import AzureStore

from cynosure.common.errors import AlreadyExists, Misconfigured
from cynosure.common.secrets import Secret
from cynosure.storage.access.azure.account import Account
from cynosure.storage.backends import azure as backend
from cynosure.storage.backends.azure import AzureFileIO
from cynosure.storage.config import AzureKeys
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import ODD_NAMES, FileIOKit, Place, collect
from cynosure.testing.harness.faults import LoseAnswer
from tests.storage.azure_corner import APPLICATION, HASTY, RETRYING_ONCE, AzureCorner
from tests.storage.recorded_service import Reply

pytestmark = pytest.mark.anyio


class TestAzureFileIO(FileIOKit):
    # A location of Azure has no segment that ends with a dot.
    odd_names = tuple(name for name in ODD_NAMES if not name.endswith("."))
    # Azure's own pages hold 5 000, of which the emulator would make a minute's work; obstore hands out 50.
    page_files = 100

    @pytest.fixture
    def place(self, azure: AzureCorner) -> Place:
        return Place(azure.base, azure.open)


async def call_everything(fileio: AzureFileIO, base: Location, expected: type[Exception]) -> None:
    # At once, since some of them wait for a timeout.
    done = await asyncio.gather(
        fileio.read(base.child("file")),
        fileio.write(base.child("file"), b"x"),
        fileio.write(base.child("file"), b"x", overwrite=True),
        fileio.delete(base.child("file")),
        fileio.delete_many([base.child("file"), base.child("file2")]),
        collect(fileio, base),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in done] == [expected] * 6, done


# --- refusals -------------------------------------------------------------------------------------------


async def test_a_wrong_secret_is_refused_with_the_reason_and_not_told(azure: AzureCorner):
    fileio = azure.open(keys=AzureKeys(APPLICATION, Secret("hunter2")))

    await call_everything(fileio, azure.base, StorageRefused)
    with pytest.raises(StorageRefused, match="invalid_client") as refused:
        await fileio.exists(azure.base.child("file"))

    assert "hunter2" not in str(refused.value)


async def test_a_token_that_the_account_does_not_take_is_refused(azure: AzureCorner):
    azure.login.answer = lambda _: Reply(b'{"access_token": "not.a.token", "expires_in": 3600}')

    await call_everything(azure.open(), azure.base, StorageRefused)


async def test_a_container_that_does_not_exist_is_refused(azure: AzureCorner):
    base = azure.locate("no-such-container", "allowed")

    await call_everything(azure.open(allowed_locations=(base.text,)), base, StorageRefused)


async def test_containers_share_a_configuration_but_not_their_files(azure: AzureCorner):
    here, there = azure.base.child("file"), azure.locate(azure.other, *azure.base.segments, "file")
    other = azure.locate(azure.other, *azure.base.segments)
    fileio = azure.open(allowed_locations=(azure.base.text, other.text))

    await fileio.write(here, b"here")
    await fileio.write(there, b"there")
    await fileio.delete_many([there])

    assert await fileio.read(here) == b"here"
    assert not await fileio.exists(there)


# --- a storage that does not answer -----------------------------------------------------------------------


async def test_a_server_that_is_down_is_unavailable_within_the_timeout(azure: AzureCorner, fault_proxy):
    proxy = await fault_proxy(azure.endpoint)
    fileio = azure.open(RETRYING_ONCE, endpoint=proxy.url)
    await fileio.write(azure.base.child("before"), b"x")
    await proxy.stop()

    async with asyncio.timeout(60):
        await call_everything(fileio, azure.base, StorageUnavailable)

    await proxy.start()
    assert await fileio.read(azure.base.child("before")) == b"x"


async def test_a_server_that_hangs_is_unavailable_within_the_timeout(azure: AzureCorner, fault_proxy):
    proxy = await fault_proxy(azure.endpoint)
    proxy.add(LoseAnswer(hangs=True), times=None)
    fileio = azure.open(HASTY, endpoint=proxy.url)

    async with asyncio.timeout(60):
        with pytest.raises(StorageUnavailable):
            await fileio.read(azure.base.child("file"))


async def test_a_login_service_that_does_not_answer_is_unavailable_and_asked_again(azure: AzureCorner):
    grant, azure.login.answer = azure.login.answer, lambda _: Reply(b"", 503)
    fileio = azure.open()

    with pytest.raises(StorageUnavailable):
        await fileio.read(azure.base.child("file"))
    azure.login.answer = grant

    await fileio.write(azure.base.child("file"), b"x")


async def test_a_certificate_of_nobody_we_trust_is_not_spoken_to(azure: AzureCorner):
    fileio = AzureFileIO(azure.config, azure.open_tokens().tokens, HASTY)

    with pytest.raises(StorageUnavailable):
        await fileio.write(azure.base.child("file"), b"x")


# --- size and shape -----------------------------------------------------------------------------------------


async def test_a_large_object_is_one_conditional_write(azure: AzureCorner):
    fileio = azure.open()
    data = bytes(range(256)) * 2**16

    await fileio.write(azure.base.child("large"), data)
    with pytest.raises(AlreadyExists):
        await fileio.write(azure.base.child("large"), data[:-1] + b"?")

    assert await fileio.read(azure.base.child("large")) == data


async def test_more_are_deleted_than_fit_into_a_request_and_some_of_them_are_gone_already(azure: AzureCorner):
    fileio = azure.open()
    locations = [azure.base.child(f"{number:03}") for number in range(120)]
    there = [location for number, location in enumerate(locations) if number % 50 != 1]
    await asyncio.gather(*(fileio.write(location, b"x") for location in there))
    assert len(await collect(fileio, azure.base)) == len(there) == 117

    await fileio.delete_many(locations)

    assert await collect(fileio, azure.base) == []


async def test_aliases_of_a_place_are_the_same_files(azure: AzureCorner):
    fileio = azure.open()
    alias = Location.parse(azure.base.text.replace("abfss:", "wasb:").replace(".dfs.", ".blob."))

    await fileio.write(azure.base.child("file"), b"x")

    assert await fileio.read(alias.child("file")) == b"x"
    [found] = await collect(fileio, alias)
    assert found.location.text == alias.child("file").text


async def test_one_token_serves_many_operations(azure: AzureCorner):
    fileio = azure.open()

    for number in range(5):
        await fileio.write(azure.base.child(str(number)), b"x")

    assert len(azure.login.heard) == 1


# --- the environment ------------------------------------------------------------------------------------


@pytest.fixture
def poisoned(
    trap: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[bytes]]:
    """Environment, home directory, instance metadata and a command line that all lead into the trap."""
    url, heard = trap
    (tmp_path / ".azure").mkdir()
    (tmp_path / ".azure" / "azureProfile.json").write_text("poison")
    (tmp_path / "token").write_text("poison")
    command = tmp_path / "az"
    command.write_text(f"#!/bin/sh\ntouch {tmp_path}/az-was-run\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path / ".azure"))
    values = {
        "endpoint": url,
        "msi_endpoint": url,
        "identity_endpoint": url,
        "authority_host": url,
        "fabric_token_service_url": url,
        "fabric_workload_host": url,
        "federated_token_file": str(tmp_path / "token"),
        "use_emulator": "true",
        "use_azure_cli": "true",
        "use_fabric_endpoint": "true",
        "skip_signature": "true",
        "disable_tagging": "false",
        "credential_type": "managed_identity",
        "allow_http": "false",
        "proxy_url": url,
        "timeout": "1ms",
        "connect_timeout": "1ns",
        "user_agent": "poison",
    }
    for name in documented_options() | set(values):
        if name != "encryption_key":
            value = values.get(name, "poison")
            monkeypatch.setenv(f"AZURE_{name.upper()}", value)
            monkeypatch.setenv(f"AZURE_STORAGE_{name.upper()}", value)
    yield heard
    assert not (tmp_path / "az-was-run").exists()


def documented_options() -> set[str]:
    stub = (Path(obstore.__file__).parent / "_store" / "_azure.pyi").read_text()
    options = stub.partition("class AzureConfig(")[2].partition("\nclass ")[0]
    return set(re.findall(r"^    ([a-z]\w+): ", options, re.MULTILINE))


async def test_neither_environment_nor_home_nor_instance_metadata_is_consulted(
    poisoned: list[bytes], azure: AzureCorner
):
    fileio = azure.open()

    await fileio.write(azure.base.child("file"), b"x")
    assert await fileio.read(azure.base.child("file")) == b"x"
    assert len(await collect(fileio, azure.base)) == 1
    await fileio.delete_many([azure.base.child("file"), azure.base.child("file2")])
    assert not await fileio.exists(azure.base.child("file"))

    assert poisoned == []
    assert len(azure.login.heard) == 1


async def test_the_trap_does_catch_a_client_that_is_not_ours(poisoned: list[bytes]):
    """Without what `open_container` does, obstore walks into it; so the test above can fail."""
    careless = AzureStore(
        "lake", use_emulator=False, client_options={"allow_http": True}, retry_config={"max_retries": 0}
    )

    with pytest.raises(obstore.exceptions.BaseError):
        await obstore.get_async(careless, "file")

    assert poisoned


def test_a_variable_that_cannot_be_overridden_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, azure: AzureCorner
):
    monkeypatch.setenv("AZURE_ENCRYPTION_KEY", "x")

    with pytest.raises(Misconfigured, match="AZURE_ENCRYPTION_KEY"):
        open_one(azure)


def test_every_option_that_obstore_knows_is_set_or_refused(azure: AzureCorner):
    """A new version of obstore may take a new variable from the environment."""
    refused = {name.removeprefix("AZURE_").lower() for name in backend._UNWELCOME}
    store = open_one(azure)

    assert len(documented_options()) > 20
    assert documented_options() - set(store.config) - refused == set()
    assert store.config["endpoint"] == f"{azure.endpoint}/{azure.account}"


def open_one(azure: AzureCorner) -> AzureStore:
    tokens = azure.open_tokens().tokens
    return backend.open_container("lake", Account.of(azure.config), tokens, replace(azure.settings))
