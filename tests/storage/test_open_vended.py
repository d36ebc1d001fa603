"""Files by the properties that a catalog gives its clients, renewed in time."""

from pathlib import Path

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Scope
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.vendor import S3Vendor, client_config
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.storage.open_vended import open_vended
from cynosure.storage.settings import StorageSettings
from cynosure.storage.vended_expiry import find_expiry_ms
from cynosure.testing.fileio_kit import FileIOKit, Place, collect
from cynosure.testing.harness.faults import Respond
from cynosure.testing.harness.http_proxy import run_http_proxy
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.vendor_kit import ALICE

from .azure_corner import AzureCorner
from .recorded_service import RecordedService, Reply
from .test_as_client import vend

pytestmark = pytest.mark.anyio

SETTINGS = StorageSettings()


def config_of(server: S3Server, place: Location) -> S3Storage:
    return S3Storage(
        allowed_locations=(place.text,),
        region=server.region,
        endpoint=server.endpoint,
        path_style_access=True,
    )


async def give(server: S3Server, place: Location, *, writable: bool = True) -> dict[str, str]:
    """What the catalog would give."""
    config = config_of(server, place)
    keys = StaticKeys(S3Session(server.access_key_id, Secret(server.secret_access_key)))
    vendor = S3Vendor(config, keys, SETTINGS, SystemClock())
    vended = await vendor.mint(Scope((place,), is_writable=writable), ALICE)
    return {**client_config(config), **vended.credentials[0].config}


class TestVendedFileIO(FileIOKit):
    @pytest.fixture
    async def place(self, s3_url: str, anyio_backend: str) -> Place:
        from cynosure.testing.s3_servers import parse_s3_server

        server = parse_s3_server("seaweedfs", s3_url)
        base = Location.parse(server.fresh_location("vended"))
        properties = await give(server, base)
        return Place(base, lambda: open_vended(properties, [base], SETTINGS, SystemClock()))


async def test_vended_credentials_open_their_place_and_nothing_else(sts_server: S3Server) -> None:
    base = Location.parse(sts_server.fresh_location("vended"))
    place = base.child("t")
    files = open_vended(await give(sts_server, place), [place], SETTINGS, SystemClock())

    await files.write(place.child("a"), b"1")

    assert [each.location for each in await collect(files, place)] == [place.child("a")]
    with pytest.raises(StorageRefused):
        await files.read(base.child("t2", "a"))
    await files.delete(place.child("a"))


async def test_credentials_are_renewed_when_half_of_a_short_life_is_over(sts_server: S3Server) -> None:
    place = Location.parse(sts_server.fresh_location("vended"))
    clock = Ahead()
    asked = 0

    async def renew() -> dict[str, str]:
        nonlocal asked
        asked += 1
        return good | {"s3.session-token-expires-at-ms": str(clock.now_us() // 1000 + 20_000)}

    good = await give(sts_server, place)
    files = open_vended(await renew(), [place], SETTINGS, clock, renew)
    await files.exists(place.child("a"))
    first = asked
    clock.ahead_s = 5
    await files.exists(place.child("a"))
    assert asked == first

    clock.ahead_s = 12
    await files.exists(place.child("a"))

    assert asked == first + 1


class Ahead(SystemClock):
    """A clock that a test sets forward."""

    ahead_s = 0

    def now_us(self) -> int:
        return super().now_us() + self.ahead_s * 1_000_000

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


async def test_credentials_that_were_long_on_their_way_are_renewed_first(sts_server: S3Server) -> None:
    place = Location.parse(sts_server.fresh_location("vended"))
    good = await give(sts_server, place)
    stale = good | {"s3.session-token": "stale", "s3.session-token-expires-at-ms": "1"}

    async def renew() -> dict[str, str]:
        return good

    files = open_vended(stale, [place], SETTINGS, SystemClock(), renew)

    assert not await files.exists(place.child("a"))


async def test_a_signature_of_azure_opens_its_container(azure: AzureCorner) -> None:
    vended = await vend(azure, is_writable=True)
    scheme, _, authority = (azure.config.endpoint or "").partition("://")
    properties = dict(vended.credentials[0].config) | {
        "adls.blob-storage-authority": authority.removesuffix("/"),
        "adls.blob-storage-scheme": scheme,
    }
    files = open_vended(properties, [azure.base], azure.settings, SystemClock())

    await files.write(azure.base.child("new"), b"x")

    assert await azure.open().read(azure.base.child("new")) == b"x"
    assert find_expiry_ms(properties) == vended.expires_ms
    await files.delete(azure.base.child("new"))


async def test_a_token_of_google_is_what_is_sent() -> None:
    """Asserted, not exercised: there is no storage of Google's here."""
    place = Location.parse("gs://bkt/lake")
    async with RecordedService(lambda _: Reply(b"", headers={"etag": '"e"'})) as google:
        properties = {"gcs.oauth2.token": "downscoped", "gcs.service.host": google.url}
        files = open_vended(properties, [place], SETTINGS, SystemClock())
        await files.write(place.child("file"), b"x")

    assert [each.headers["authorization"] for each in google.heard] == ["Bearer downscoped"]


@pytest.mark.parametrize("place", ["s3://bkt/t", "gs://bkt/t", "abfss://con@account.dfs.core.windows.net/t"])
async def test_properties_without_credentials_are_refused_and_nothing_else_is_looked_for(
    place: str, poisoned: None
) -> None:
    location = Location.parse(place)
    files = open_vended({}, [location], SETTINGS, SystemClock())

    with pytest.raises(StorageRefused, match="no credentials"):
        await files.exists(location.child("a"))


async def test_local_files_are_reached_below_allowed_roots_only(tmp_path: Path) -> None:
    root = Location.parse(f"file://{tmp_path}/lake")
    inside = root.child("t")

    files = open_vended({}, [inside], SETTINGS, SystemClock(), file_roots=[root])
    await files.write(inside.child("a"), b"")

    assert (tmp_path / "lake" / "t" / "a").exists()
    for roots in ([], [root.child("t2")]):
        with pytest.raises(StorageRefused, match="outside of what may be touched"):
            open_vended({}, [inside], SETTINGS, SystemClock(), file_roots=roots)


def test_places_in_different_storages_are_refused() -> None:
    places = [Location.parse("s3://bkt/t"), Location.parse("gs://bkt/t")]

    with pytest.raises(StorageRefused):
        open_vended({}, places, SETTINGS, SystemClock())


async def test_a_change_is_sent_once_and_what_is_read_is_asked_for_again(sts_server: S3Server) -> None:
    """Who changes files under a lease has looked at it for this request, and for no other one."""
    place = Location.parse(sts_server.fresh_location("vended"))
    with run_http_proxy(sts_server.endpoint) as proxy:
        properties = {**await give(sts_server, place), "s3.endpoint": proxy.url}
        files = open_vended(properties, [place], SETTINGS, SystemClock())
        await files.write(place.child("a"), b"1")
        busy = proxy.add(Respond(503, b"<Error><Code>SlowDown</Code></Error>"), times=None)

        with pytest.raises(StorageUnavailable):
            await files.delete(place.child("a"))
        assert busy.hits == 1
        with pytest.raises(StorageUnavailable):
            await files.write(place.child("b"), b"2")
        assert busy.hits == 2
        with pytest.raises(StorageUnavailable):
            await files.read(place.child("a"))
        assert busy.hits == 2 + 1 + SETTINGS.retries

        proxy.clear()
        assert [each.location for each in await collect(files, place)] == [place.child("a")]
        await files.delete(place.child("a"))
