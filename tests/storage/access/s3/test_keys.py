"""Where keys come from, and that a role's are renewed in one place for everything that needs them."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists
from cynosure.common.keyring import Keyring
from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.access.s3.keys import AssumedRole, NoKeys, S3Session, StaticKeys
from cynosure.storage.access.vending import Vending
from cynosure.storage.backends.s3 import S3FileIO
from cynosure.storage.config import S3Sts, seal_keys
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.storage.open_s3 import open_s3
from cynosure.storage.settings import StorageSettings
from cynosure.testing.fileio_kit import collect
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.harness.faults import Respond
from cynosure.testing.vendor_kit import ALICE

from .boto_client import BotoClient
from .sts_corner import SHORT, StsCorner

pytestmark = pytest.mark.anyio
KEYRING = Keyring({"k1": b"1" * 32}, "k1")
OWNER = ("default", "1")
ANY_ROLE = "arn:aws:iam::000000000000:role/any"


def test_a_session_is_the_same_after_the_way_through_properties():
    session = S3Session("KEY", Secret("secret"), Secret("token"), 17)

    assert S3Session.from_properties(session.to_properties()) == session
    assert S3Session.from_properties(S3Session("K", Secret("s")).to_properties()) == S3Session(
        "K", Secret("s")
    )


def test_a_session_does_not_show_its_secrets():
    assert "hidden" not in repr(S3Session("KEY", Secret("hidden"), Secret("hidden too")))


async def test_without_keys_there_is_a_reason():
    with pytest.raises(StorageRefused, match="no access key"):
        await NoKeys().load()


async def test_the_files_of_the_server_are_reached_with_nothing_but_a_session(sts: StsCorner):
    role = AssumedRole(
        Vending(sts.vendor(), SystemClock()), Scope((sts.base,), is_writable=True), ALICE, SystemClock()
    )
    files = S3FileIO(sts.config, role, StorageSettings())
    names = ["plain", "with space", "percent%20", "quote'\"", "ünïcödé-日本", "dollar$"]

    for name in names:
        await files.write(sts.base.child("d", name), name.encode())

    assert [await files.read(sts.base.child("d", name)) for name in names] == [
        each.encode() for each in names
    ]
    assert len(await collect(files, sts.base.child("d"))) == len(names)
    with pytest.raises(AlreadyExists):
        await files.write(sts.base.child("d", "plain"), b"other")
    await files.write(sts.base.child("d", "plain"), b"other", overwrite=True)
    await files.delete_many(sts.base.child("d", name) for name in names)
    assert not await files.exists(sts.base.child("d", "plain"))


async def test_the_session_of_the_server_ends_at_the_allowed_locations(sts: StsCorner):
    role = AssumedRole(
        Vending(sts.vendor(), SystemClock()), Scope((sts.base,), is_writable=True), ALICE, SystemClock()
    )
    beyond = replace(sts.config, allowed_locations=(sts.base.text, sts.elsewhere.text))
    files = S3FileIO(beyond, role, StorageSettings())

    await files.write(sts.base.child("file"), b"x")

    with pytest.raises(StorageRefused):
        await files.write(sts.elsewhere.child("file"), b"x")


async def test_what_is_opened_asks_the_token_service_once_for_all(sts: StsCorner, fault_proxy):
    """The files of a catalog with a role, and credentials for clients: one request per scope, for a crowd."""
    proxy = await fault_proxy(sts.server.endpoint)
    asked: list[bytes] = []
    proxy.add(
        Respond(), when=lambda request: b"AssumeRole" in request.data and bool(asked.append(request.data))
    )
    config = replace(
        sts.config,
        sealed_keys=seal_keys(sts.keys, KEYRING, OWNER),
        sts=S3Sts(role_arn=sts.server.role_arn or ANY_ROLE, endpoint=proxy.url),
    )
    storage = open_s3(config, OWNER, lambda: KEYRING, SHORT, SystemClock())
    scope = Scope((sts.base.child("orders"),), is_writable=True)
    assert storage.vending is not None

    vended = await asyncio.gather(*(storage.vending.vend(scope, ALICE) for _ in range(64)))
    await asyncio.gather(*(storage.files.exists(sts.base.child(f"file {number}")) for number in range(64)))

    # A server without roles is asked twice more: it refused the rule against assuming them, so it was tried
    # whether a session could.
    assert len(asked) == (2 if sts.server.role_arn else 4)
    assert all(each is vended[0] for each in vended)
    client = BotoClient(sts.server, vended[0].credentials[0].config)
    await client.put(sts.base.child("orders", "file"), b"x")
    assert await storage.files.read(sts.base.child("orders", "file")) == b"x"
    bodies = b"".join(asked)
    assert b"RoleSessionName=cynosure-alice-" in bodies
    assert b"RoleSessionName=cynosure-server-" in bodies


async def test_the_files_of_a_role_go_on_when_its_session_is_renewed(sts: StsCorner, manual_clock):
    """The clock of a test, so that half of the life is over at once; the sessions are real."""
    clock = manual_clock
    await clock.advance(SystemClock().now_us() / 1e6 - clock.now_us() / 1e6)
    vending = Vending(sts.vendor(StorageSettings(credential_lifetime=timedelta(minutes=15)), clock), clock)
    role = AssumedRole(vending, Scope((sts.base,), is_writable=True), ALICE, clock)
    files = S3FileIO(sts.config, role, StorageSettings())
    await files.write(sts.base.child("before"), b"x")
    first = await role.load()

    await clock.advance(7.6 * 60)
    at_hand = await role.load()
    await vending.renew(Scope((sts.base,), is_writable=True), ALICE)
    second = await role.load()
    await files.write(sts.base.child("after"), b"x")

    assert at_hand == first
    assert second.access_key_id != first.access_key_id or second.session_token != first.session_token
    assert await files.exists(sts.base.child("before"))


async def test_static_keys_stay_as_they_are():
    session = S3Session("KEY", Secret("secret"))

    assert await StaticKeys(session).load() is session


class FailingVendor:
    """Gives sessions of an hour, until it fails."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.error: Exception | None = None
        self.asked = 0

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        self.asked += 1
        if self.error is not None:
            raise self.error
        now_ms = self._clock.now_us() // 1000
        session = S3Session(f"KEY{self.asked}", Secret("s"), Secret("t"), now_ms + 3_600_000)
        credential = Credential(scope.locations[0].text, session.to_properties())
        return Vended((credential,), now_ms, now_ms + 3_600_000)


@pytest.mark.parametrize("error", [StorageUnavailable("Gone"), StorageRefused("No")])
async def test_the_session_of_the_server_serves_to_its_end_while_no_newer_one_can_be_had(
    manual_clock: ManualClock, error: Exception
):
    """I58 is about clients: the server itself goes on committing while the token service is away."""
    vendor = FailingVendor(manual_clock)
    scope = Scope((Location.parse("s3://bkt/all"),), is_writable=True)
    role = AssumedRole(Vending(vendor, manual_clock), scope, ALICE, manual_clock)
    assert (await role.load()).access_key_id == "KEY1"
    vendor.error = error

    for _ in range(58):
        await manual_clock.advance(60)
        assert (await role.load()).access_key_id == "KEY1"
    assert 20 < vendor.asked < 40
    await manual_clock.advance(61)
    with pytest.raises(type(error)):
        await role.load()

    vendor.error = None
    await manual_clock.advance(16)
    assert (await role.load()).access_key_id not in ("", "KEY1")


async def test_a_clock_that_is_set_back_does_not_lengthen_the_session_of_the_server(
    manual_clock: ManualClock,
):
    vendor = FailingVendor(manual_clock)
    scope = Scope((Location.parse("s3://bkt/all"),), is_writable=True)
    role = AssumedRole(Vending(vendor, manual_clock), scope, ALICE, manual_clock)
    await role.load()
    vendor.error = StorageUnavailable("Gone")

    manual_clock.step_wall(-7200)
    await manual_clock.advance(3600)

    with pytest.raises(StorageUnavailable):
        await role.load()
