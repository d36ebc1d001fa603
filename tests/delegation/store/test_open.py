"""Which store a URL opens, and what is wrong with one that opens none."""

from pathlib import Path

import asyncpg
import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from cynosure.common.errors import BadInput, Misconfigured, NewerFormat, Unavailable
from cynosure.delegation.object_types import OBJECT_TYPES
from cynosure.delegation.store.open import SCHEMA, open_task_store, read_tables_address
from cynosure.delegation.store.stored import first_version, next_version, to_record
from cynosure.delegation.transitions import cancelled, submitted
from cynosure.persistence.core_types import load_types
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.objects import Unknown
from cynosure.persistence.references import REALMS, realm_reference
from cynosure.persistence.scopes import list_realms
from cynosure.persistence.spi import RealmId
from cynosure.testing.task_store_kit.samples import id_of, new, order

pytestmark = pytest.mark.anyio


def test_tables_are_beside_those_of_a_catalog_unless_the_url_says_where() -> None:
    assert read_tables_address("postgresql://h/d").schema == SCHEMA
    assert read_tables_address("postgresql://h/d?schema=cynosure").schema == SCHEMA
    assert read_tables_address("postgresql://h/d?schema=mine").schema == "mine"


async def test_a_store_of_objects_has_the_realm_and_outlives_its_process(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'tasks.db'}"
    async with open_task_store(url, "acme") as store:
        await store.insert(new("a"))

    async with open_task_store(url, "acme") as store, open_task_store(url, "other") as other:
        assert await store.find(id_of("a")) is not None
        # Realms share nothing.
        assert await other.find(id_of("a")) is None
        assert await other.lease("worker-1", now_us=2**50, lease_us=1) is None
    async with open_persistence(url) as persistence:
        assert set(await list_realms(persistence.committer(REALMS))) == {"acme", "other", "default"}
        assert await persistence.heads.find(realm_reference(RealmId("acme"), "tasks")) is not None


async def test_tables_keep_realms_apart(postgres_schema_url: str) -> None:
    async with (
        open_task_store(postgres_schema_url, "acme") as store,
        open_task_store(postgres_schema_url, "other") as other,
    ):
        await store.insert(new("a"))

        assert await other.find(id_of("a")) is None
        assert await other.lease("worker-1", now_us=2**50, lease_us=1) is None
        assert await other.forget(2**50) == 0
        assert (await other.insert(submitted(order("a"), now_us=5))).created_us == 5


async def test_a_kind_of_task_that_only_a_newer_version_knows_is_said_to_be_one(
    postgres_schema_url: str, postgres_url: str
) -> None:
    async with open_task_store(postgres_schema_url, "default") as store:
        record = await store.insert(new("a"))
        connection = await asyncpg.connect(postgres_url)
        schema = postgres_schema_url.rpartition("=")[2]
        await connection.execute(f"UPDATE {schema}.delegation_tasks SET task_type = 'BRAND_NEW'")
        await connection.close()

        with pytest.raises(NewerFormat) as refused:
            await store.find(record.task_id)

    assert refused.value.details == {"task_type": "BRAND_NEW", "status": "SUBMITTED"}
    stored = replace(first_version(record), status="ASLEEP")
    with pytest.raises(NewerFormat):
        to_record(stored)


def test_what_a_newer_version_keeps_of_a_task_stays_in_its_next_version() -> None:
    record = new("a")
    unknown = Unknown(version=2, fields={"colour": Raw(msgspec.msgpack.encode("blue"))})
    before = replace(first_version(record), unknown=unknown)

    after = next_version(before, cancelled(record, now_us=5))

    assert after.unknown is unknown
    assert to_record(after) == cancelled(record, now_us=5)


@pytest.mark.parametrize(
    ("url", "realm", "error"),
    [
        ("memory:", "", BadInput),
        ("memory:", "a/b", BadInput),
        ("nowhere:x", "default", Misconfigured),
        ("no-scheme", "default", Misconfigured),
        ("postgresql://u:s3cret@h:port/d", "default", Misconfigured),
        ("postgresql://u:s3cret@h/d?schema=No", "default", Misconfigured),
        ("postgresql://u:s3cret@127.0.0.1:1/d", "default", Unavailable),
    ],
)
async def test_a_url_or_realm_that_cannot_be_is_refused_without_its_password(
    url: str, realm: str, error: type[Exception]
) -> None:
    with pytest.raises(error) as refused:
        async with open_task_store(url, realm):
            pass

    assert "s3cret" not in str(refused.value)
    assert getattr(refused.value, "fix", "")


def test_the_types_of_the_room_are_found_by_entry_point() -> None:
    installed = {each.name: each for each in load_types()}

    assert [each.name for each in OBJECT_TYPES] == ["delegated-task"]
    assert all(installed[each.name] is each for each in OBJECT_TYPES)
