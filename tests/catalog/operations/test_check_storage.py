"""Checks of storages that work and of storages that do not, on real ones."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import NoSuchCatalog
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.check_storage import StorageCheck, check_storage
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage, S3Keys, S3Storage, S3Sts
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import S3Server, parse_s3_server
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in

pytestmark = pytest.mark.anyio

OWN = ["write", "read", "list", "create-once", "delete"]
CREDENTIALS = ["read-write-credentials", "read-only-credentials"]
SIGNATURES = ["signing", "bulk-deletes"]
Check = Callable[..., Awaitable[StorageCheck]]


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncIterator[Directory]:
    """Catalogs whose server does not wait long for their storages."""
    settings = StorageSettings(
        connect_timeout=timedelta(seconds=10), operation_timeout=timedelta(seconds=30), retries=0
    )
    async with open_directory_in(tmp_path, storage=settings) as directory:
        yield directory


def config_of(server: S3Server, *locations: str) -> S3Storage:
    return S3Storage(
        allowed_locations=locations,
        endpoint=server.endpoint,
        region=server.region,
        path_style_access=True,
        sts=S3Sts(role_arn=server.role_arn, is_unavailable=not server.has_sts),
    )


async def check(
    directory: Directory, config: S3Storage, *, key: str, secret: str, base: str | None = None
) -> StorageCheck:
    """A check of a new catalog."""
    wanted = NewCatalog(
        name="lake",
        base_location=base or config.allowed_locations[0],
        storage=config,
        storage_keys=S3Keys(key, Secret(secret)),
    )
    await create_catalog(directory, ROOT, wanted)
    return await check_storage(directory, ROOT, "lake")


async def check_on(directory: Directory, server: S3Server, config: S3Storage) -> StorageCheck:
    return await check(directory, config, key=server.access_key_id, secret=server.secret_access_key)


def outcomes(found: StorageCheck) -> Mapping[str, list[str]]:
    """The names of steps by what came of them."""
    by_outcome: dict[str, list[str]] = {}
    for each in found.steps:
        by_outcome.setdefault(each.outcome, []).append(each.name)
    return by_outcome


async def list_names(catalog: OpenCatalog) -> list[str]:
    return [found.location.text async for found in catalog.files.list(catalog.base)]


async def test_a_store_that_gives_credentials_is_found_to_work(
    directory: Directory, sts_server: S3Server
) -> None:
    base = sts_server.fresh_location()

    found = await check_on(directory, sts_server, config_of(sts_server, base))

    assert outcomes(found) == {"ok": OWN + CREDENTIALS, "skipped": SIGNATURES}, found.steps
    assert found.is_ok
    assert found.storage_type == "S3"
    assert await list_names(await directory.open(DEFAULT_REALM, "lake")) == []


async def test_every_allowed_location_is_tried(directory: Directory, sts_server: S3Server) -> None:
    base, other = sts_server.fresh_location(), sts_server.fresh_location()
    missing = f"s3://{sts_server.bucket}-none/p"

    found = await check_on(directory, sts_server, config_of(sts_server, base, other, missing, f"{base}/in"))

    tried = list(dict.fromkeys(each.location for each in found.steps))
    assert tried == [base, other, missing, f"{base}/in"]
    failed = [each for each in found.steps if each.outcome == "failed"]
    assert [(each.name, each.location) for each in failed] == [("write", missing)]
    assert failed[0].fix


async def test_a_store_without_a_token_service_is_found_to_work_by_signing(
    directory: Directory, plain_s3_server: S3Server
) -> None:
    base = plain_s3_server.fresh_location()

    found = await check_on(directory, plain_s3_server, config_of(plain_s3_server, base))

    assert outcomes(found) == {"ok": [*OWN, "signing"], "skipped": [*CREDENTIALS, "bulk-deletes"]}
    bulk = found.steps[-1]
    assert "unsigned body" in bulk.message, "what the signer has found out about the store"
    assert "delete one by one" in bulk.fix
    assert await list_names(await directory.open(DEFAULT_REALM, "lake")) == []


async def test_a_token_service_that_is_not_there_is_told_and_signing_is_tried_instead(
    hasty: Directory, plain_s3_server: S3Server
) -> None:
    base = plain_s3_server.fresh_location()
    config = structs.replace(config_of(plain_s3_server, base), sts=S3Sts())

    found = await check_on(hasty, plain_s3_server, config)

    assert outcomes(found) == {"ok": [*OWN, "signing"], "failed": CREDENTIALS, "skipped": ["bulk-deletes"]}
    assert not found.is_ok
    assert await list_names(await hasty.open(DEFAULT_REALM, "lake")) == []


async def test_local_files_are_found_to_work(directory: Directory, tmp_path: Path) -> None:
    catalog = await make_catalog(directory, tmp_path / "files")
    place = Path("/", *catalog.base.segments)
    place.mkdir(parents=True, exist_ok=True)
    (place / "mine").write_text("stays")

    found = await check_storage(directory, ROOT, catalog.entity.name)

    assert outcomes(found) == {"ok": OWN, "skipped": CREDENTIALS + SIGNATURES}
    assert [each.name for each in place.rglob("*")] == ["mine"]


async def test_a_directory_that_cannot_be_written_to_is_told(directory: Directory, tmp_path: Path) -> None:
    catalog = await make_catalog(directory, tmp_path / "files")
    place = Path("/", *catalog.base.segments)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file where the directory should be")

    found = await check_storage(directory, ROOT, catalog.entity.name)

    assert outcomes(found)["failed"][0] == "write"
    assert not found.is_ok


async def test_a_wrong_key_is_told_with_what_the_store_said(
    directory: Directory, plain_s3_server: S3Server
) -> None:
    config = config_of(plain_s3_server, plain_s3_server.fresh_location())

    found = await check(directory, config, key="AKIAWRONG", secret="wrong-secret-of-a-test")

    assert outcomes(found)["failed"] == ["write"]
    assert len(outcomes(found)["skipped"]) == 8
    assert found.steps[0].details["code"] == "InvalidAccessKeyId"
    assert "keys" in found.steps[0].fix
    assert "wrong-secret-of-a-test" not in str(found)


async def test_a_wrong_secret_is_told(directory: Directory, plain_s3_server: S3Server) -> None:
    config = config_of(plain_s3_server, plain_s3_server.fresh_location())

    found = await check(directory, config, key=plain_s3_server.access_key_id, secret="wrong-secret-of-a-test")

    assert outcomes(found)["failed"] == ["write"]
    assert found.steps[0].details["code"] == "SignatureDoesNotMatch"


async def test_a_wrong_role_is_told(directory: Directory, s3_url: str) -> None:
    sts_server = parse_s3_server("seaweedfs", s3_url)
    config = structs.replace(
        config_of(sts_server, sts_server.fresh_location()),
        sts=S3Sts(role_arn="arn:aws:iam::000000000000:role/nobody"),
    )

    found = await check_on(directory, sts_server, config)

    assert outcomes(found)["failed"] == ["write"], "the server reaches files as the role, too"
    assert "token service" in found.steps[0].message
    assert "roleArn" in found.steps[0].fix


async def test_an_unknown_bucket_is_told(directory: Directory, plain_s3_server: S3Server) -> None:
    config = config_of(plain_s3_server, "s3://no-such-bucket-anywhere/p")

    found = await check_on(directory, plain_s3_server, config)

    assert outcomes(found)["failed"] == ["write"]
    assert found.steps[0].message == "There is no such bucket"


async def test_an_endpoint_that_does_not_answer_is_told_once_and_ends_the_check(
    hasty: Directory, plain_s3_server: S3Server
) -> None:
    silent = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    config = structs.replace(
        config_of(plain_s3_server, "s3://first/p", "s3://second/p"), endpoint=f"http://127.0.0.1:{port}"
    )

    async with silent:
        found = await check_on(hasty, plain_s3_server, config)

    failed = [(each.name, each.location) for each in found.steps if each.outcome == "failed"]
    assert failed == [("write", "s3://first/p"), ("clean-up", "s3://first/p")]
    assert "left" in found.steps[9].details, "a write without an answer may have happened"
    assert {each.message for each in found.steps if each.location == "s3://second/p"} == {
        "The storage does not answer",
        "Nothing could be written",
    }


async def test_a_location_that_a_table_holds_is_left_alone(directory: Directory, tmp_path: Path) -> None:
    catalog = await make_catalog(directory, tmp_path / "files")
    await create_namespace(catalog, ROOT, ("ns",), {})
    await create_table(
        catalog, ROOT, CreateTable(("ns",), "all", SCHEMA, location=catalog.entity.base_location)
    )
    before = sorted(await list_names(catalog))

    found = await check_storage(directory, ROOT, catalog.entity.name)

    assert list(outcomes(found)) == ["skipped"]
    assert "A table holds" in found.steps[0].message
    assert sorted(await list_names(catalog)) == before


async def test_what_another_catalog_owns_is_only_looked_at(directory: Directory, tmp_path: Path) -> None:
    """I72."""
    base = f"file://{tmp_path}/files/theirs"
    await create_catalog(
        directory,
        ROOT,
        NewCatalog(
            name="theirs", base_location=base, storage=FileStorage(allowed_locations=(base,)), kind="EXTERNAL"
        ),
    )

    found = await check_storage(directory, ROOT, "theirs")

    assert outcomes(found) == {"ok": ["list"], "skipped": [*OWN[:2], *OWN[3:], *CREDENTIALS, *SIGNATURES]}
    assert not (tmp_path / "files" / "theirs").exists()


async def test_a_check_that_is_given_up_leaves_nothing(directory: Directory, sts_server: S3Server) -> None:
    config = config_of(sts_server, sts_server.fresh_location())
    await check_on(directory, sts_server, config)
    catalog = await directory.open(DEFAULT_REALM, "lake")

    checking = asyncio.create_task(check_storage(directory, ROOT, "lake"))
    while not await list_names(catalog):
        assert not checking.done()
    checking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking

    assert await list_names(catalog) == []


async def test_a_catalog_that_is_not_there_cannot_be_checked(directory: Directory) -> None:
    with pytest.raises(NoSuchCatalog):
        await check_storage(directory, ROOT, "none")
