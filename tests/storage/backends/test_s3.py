"""The kit on S3, and what only a network and an access key can do to us."""

import asyncio
import itertools
import os
import re
from pathlib import Path

import msgspec
import obstore
import pytest
from obstore.store import S3Store

from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists, Misconfigured
from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Scope
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.vendor import S3Vendor
from cynosure.storage.backends import s3_bucket
from cynosure.storage.backends.s3 import S3FileIO
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import FileMissing, StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import FileIOKit, Place, collect
from cynosure.testing.harness.faults import CutRequest, LoseAnswer, Respond
from cynosure.testing.vendor_kit import ALICE

from .s3_corner import HASTY, PATIENT, RETRYING_ONCE, S3Corner

pytestmark = pytest.mark.anyio


class TestS3FileIO(FileIOKit):
    @pytest.fixture
    def place(self, s3: S3Corner) -> Place:
        return Place(s3.base, s3.open)


async def call_everything(fileio: S3FileIO, base: Location, expected: type[Exception]) -> None:
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


async def test_one_file_that_may_not_be_deleted_is_a_refusal(s3: S3Corner):
    """The request succeeds as a whole, and its answer names the file."""
    vendor = S3Vendor(s3.config, StaticKeys(s3.keys), PATIENT, SystemClock())
    vended = await vendor.mint(Scope((s3.base,), is_writable=False), ALICE)
    reader = S3FileIO(s3.config, StaticKeys(S3Session.from_properties(vended.credentials[0].config)), PATIENT)
    await s3.open().write(s3.base.child("file"), b"x")

    with pytest.raises(StorageRefused) as refused:
        await reader.delete(s3.base.child("file"))

    assert refused.value.details["code"] == "AccessDenied"
    assert await s3.open().exists(s3.base.child("file"))


@pytest.mark.parametrize("wrong", [{"access_key_id": "ELSE"}, {"secret_access_key": Secret("else")}])
async def test_a_wrong_key_is_refused_and_nothing_of_it_is_told(s3: S3Corner, wrong: dict[str, object]):
    keys = msgspec.structs.replace(s3.keys, **wrong)
    fileio = S3FileIO(s3.config, StaticKeys(keys), PATIENT)

    await call_everything(fileio, s3.base, StorageRefused)
    with pytest.raises(StorageRefused):
        await fileio.exists(s3.base.child("file"))

    with pytest.raises(StorageRefused) as refused:
        await fileio.read(s3.base.child("file"))
    assert keys.secret_access_key.reveal() not in str(refused.value)


async def test_a_bucket_that_does_not_exist_is_refused(s3: S3Corner):
    base = Location.parse("s3://no-such-bucket-here/allowed")

    await call_everything(s3.open(allowed_locations=(base.text,)), base, StorageRefused)


async def test_buckets_share_a_configuration_but_not_their_files(s3: S3Corner):
    other = Location.parse(f"s3://no-such-bucket-here/{s3.base.segments[0]}")
    fileio = s3.open(allowed_locations=(s3.base.text, other.text))

    await fileio.write(s3.base.child("file"), b"x")
    with pytest.raises(StorageRefused):
        await fileio.delete_many([other.child("file"), s3.base.child("file")])

    assert await fileio.read(s3.base.child("file")) == b"x"


# --- a storage that does not answer -----------------------------------------------------------------------


async def test_a_server_that_is_down_is_unavailable_within_the_timeout(s3: S3Corner, fault_proxy):
    proxy = await fault_proxy(s3.config.endpoint)
    fileio = s3.open(RETRYING_ONCE, endpoint=proxy.url)
    await fileio.write(s3.base.child("before"), b"x")
    await proxy.stop()

    async with asyncio.timeout(60):
        await call_everything(fileio, s3.base, StorageUnavailable)
        with pytest.raises(StorageUnavailable):
            await fileio.exists(s3.base.child("file"))

    await proxy.start()
    assert await fileio.read(s3.base.child("before")) == b"x"


async def test_a_server_that_hangs_is_unavailable_within_the_timeout(s3: S3Corner, fault_proxy):
    proxy = await fault_proxy(s3.config.endpoint)
    proxy.add(LoseAnswer(hangs=True), times=None)
    fileio = s3.open(HASTY, endpoint=proxy.url)

    async with asyncio.timeout(60):
        await call_everything(fileio, s3.base, StorageUnavailable)


async def test_server_errors_are_retried_and_then_unavailable(s3: S3Corner, fault_proxy):
    proxy = await fault_proxy(s3.config.endpoint)
    fileio = s3.open(RETRYING_ONCE, endpoint=proxy.url)
    slow_down = Respond(status=503, body=b"<Error><Code>SlowDown</Code></Error>")

    proxy.add(slow_down, times=1)
    await fileio.write(s3.base.child("file"), b"x")
    proxy.add(slow_down, times=None)
    with pytest.raises(StorageUnavailable):
        await fileio.read(s3.base.child("file"))


async def test_a_long_listing_goes_on_where_it_was(s3: S3Corner, fault_proxy):
    """A listing comes in pages of 1,000. The second one fails as often as the client itself tries."""
    proxy = await fault_proxy(s3.config.endpoint)
    names = {f"{number:04}" for number in range(1_010)}
    writer = s3.open()
    rest = iter(sorted(names))

    async def write() -> None:
        for name in rest:
            await writer.write(s3.base.child(name), b"")

    await asyncio.gather(*(write() for _ in range(32)))
    slow_down = Respond(status=503, body=b"<Error><Code>SlowDown</Code></Error>")
    asked = itertools.count(1)
    # The first page comes, then two requests are refused: the client's own second try is one of them.
    proxy.add(slow_down, when=lambda _: next(asked) in (2, 3), times=None)

    found = await collect(s3.open(RETRYING_ONCE, endpoint=proxy.url), s3.base)

    assert next(asked) > 4
    assert sorted(each.location.segments[-1] for each in found) == sorted(names)
    await writer.delete_many([s3.base.child(name) for name in names])


async def test_a_write_whose_answer_was_lost_succeeds_when_repeated(s3: S3Corner, fault_proxy):
    proxy = await fault_proxy(s3.config.endpoint)
    fileio = s3.open(RETRYING_ONCE, endpoint=proxy.url)
    proxy.add(LoseAnswer(), when=lambda request: request.method == "PUT", times=None)

    with pytest.raises(StorageUnavailable):
        await fileio.write(s3.base.child("file"), b"x")
    proxy.clear()

    assert await s3.open().read(s3.base.child("file")) == b"x"
    await fileio.write(s3.base.child("file"), b"x")
    with pytest.raises(AlreadyExists):
        await fileio.write(s3.base.child("file"), b"y")


async def test_cut_connections_are_survived(s3: S3Corner, fault_proxy):
    proxy = await fault_proxy(s3.config.endpoint)
    fileio = s3.open(endpoint=proxy.url)
    await fileio.write(s3.base.child("file"), b"x")
    proxy.add(CutRequest(), times=1)

    assert await fileio.read(s3.base.child("file")) == b"x"


# --- size and shape -----------------------------------------------------------------------------------------


async def test_a_large_object_is_one_conditional_write(s3: S3Corner):
    fileio = s3.open()
    data = os.urandom(24 * 2**20)

    await fileio.write(s3.base.child("large"), data)
    with pytest.raises(AlreadyExists):
        await fileio.write(s3.base.child("large"), data[:-1] + b"?")

    assert await fileio.read(s3.base.child("large")) == data


async def test_the_key_of_an_object_is_the_path_as_written(s3: S3Corner, fault_proxy):
    """What reaches the server: the key, percent-encoded once and no more."""
    proxy = await fault_proxy(s3.config.endpoint)
    seen: list[str] = []
    proxy.add(Respond(status=404), when=lambda request: bool(seen.append(request.path)))

    with pytest.raises(FileMissing):
        await s3.open(endpoint=proxy.url).read(s3.base.child("a%20b c"))

    assert seen == [f"/{s3.base.authority}/{'/'.join(s3.base.segments)}/a%2520b%20c"]


@pytest.mark.parametrize(
    ("changes", "bucket", "expected"),
    [
        ({}, "bkt", "https://bkt.s3.eu-west-1.amazonaws.com"),
        ({}, "dotted.bkt", "https://s3.eu-west-1.amazonaws.com"),
        ({"path_style_access": True}, "bkt", "https://s3.eu-west-1.amazonaws.com"),
        ({"region": "cn-north-1"}, "bkt", "https://bkt.s3.cn-north-1.amazonaws.com.cn"),
        ({"endpoint": "http://host:1/"}, "bkt", "http://bkt.host:1"),
        ({"endpoint": "http://host:1/", "path_style_access": True}, "bkt", "http://host:1"),
        ({"endpoint": "https://outside", "endpoint_internal": "http://in:2"}, "bkt", "http://bkt.in:2"),
    ],
)
def test_the_endpoint_of_a_bucket(changes: dict[str, object], bucket: str, expected: str):
    config = S3Storage(allowed_locations=(f"s3://{bucket}/x",), region="eu-west-1")
    config = msgspec.structs.replace(config, **changes)

    store = s3_bucket.open_bucket(bucket, config, lambda: S3Session("a", Secret("b")), PATIENT)

    assert store.config["endpoint"] == expected
    assert store.config["virtual_hosted_style_request"] == str("bkt." in expected).lower()


# --- the environment ------------------------------------------------------------------------------------


async def test_neither_environment_nor_home_nor_instance_metadata_is_consulted(
    poisoned: list[bytes], s3: S3Corner, fault_proxy
):
    proxy = await fault_proxy(s3.config.endpoint)
    requests: list[bytes] = []
    proxy.add(CutRequest(), when=lambda request: bool(requests.append(request.data)))
    fileio = s3.open(endpoint=proxy.url)

    await fileio.write(s3.base.child("file"), b"x")
    assert await fileio.read(s3.base.child("file")) == b"x"
    assert len(await collect(fileio, s3.base)) == 1
    await fileio.delete_many([s3.base.child("file"), s3.base.child("file2")])
    assert not await fileio.exists(s3.base.child("file"))

    assert poisoned == []
    sent = b"".join(requests).lower()
    assert len(requests) == 5
    assert b"poison" not in sent
    assert b"x-amz-security-token" not in sent
    assert sent.count(s3.keys.access_key_id.lower().encode()) == 5


async def test_the_trap_does_catch_a_client_that_is_not_ours(poisoned: list[bytes]):
    """Without what `open_bucket` does, obstore walks into it; so the test above can fail."""
    careless = S3Store("bucket", s3_express=False, client_options={"allow_http": True})

    with pytest.raises(obstore.exceptions.BaseError):
        await obstore.get_async(careless, "file")

    assert poisoned


async def test_keys_without_a_provider_elsewhere_are_not_searched_for(poisoned: list[bytes], s3: S3Corner):
    fileio = S3FileIO(s3.config, StaticKeys(S3Session("", Secret(""))), HASTY)

    with pytest.raises(StorageRefused):
        await fileio.read(s3.base.child("file"))

    assert poisoned == []


@pytest.mark.parametrize("name", s3_bucket._UNWELCOME)
def test_variables_that_cannot_be_overridden_are_refused_by_name(
    monkeypatch, s3_config: S3Storage, name: str
):
    monkeypatch.setenv(name, "x")

    with pytest.raises(Misconfigured, match=name):
        s3_bucket.open_bucket("bkt", s3_config, lambda: S3Session("a", Secret("b")), PATIENT)


@pytest.fixture
def s3_config() -> S3Storage:
    return S3Storage(allowed_locations=("s3://bkt/x",))


def test_every_option_that_obstore_knows_is_set_or_refused(s3_config: S3Storage):
    """A new version of obstore may take a new variable from the environment."""
    stub = (Path(obstore.__file__).parent / "_store" / "_aws.pyi").read_text()
    options = stub.partition("class S3Config(")[2].partition("\nclass ")[0]
    documented = set(re.findall(r"^    (?:aws_)?([a-z]\w+): ", options, re.MULTILINE))
    refused = {name.removeprefix("AWS_").lower() for name in s3_bucket._UNWELCOME}
    store = s3_bucket.open_bucket("bkt", s3_config, lambda: S3Session("a", Secret("b")), PATIENT)

    assert len(documented) > 25
    # Documented, but the option is called endpoint_url_sts.
    assert documented - set(store.config) - refused == {"sts_endpoint"}
    assert "endpoint_url_sts" in store.config
