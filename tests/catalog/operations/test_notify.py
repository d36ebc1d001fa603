import asyncio
import uuid
from pathlib import Path

import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused, NoSuchTable, OutdatedNotification, ViewExists
from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.notify import Notification, notify
from cynosure.catalog.operations.register_view import register_view
from cynosure.common.errors import BadInput
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.external import UUID, make_external, view_file, write_metadata
from tests.catalog.tables import decoded

pytestmark = pytest.mark.anyio

DEEP = Identifier(("a", "b"), "t")


class Outside:
    """The owner of external tables: it writes their files and tells about them."""

    def __init__(self, catalog: OpenCatalog) -> None:
        self.catalog = catalog

    async def write(self, name: str = "v1", **more) -> str:
        return await write_metadata(self.catalog, name, **more)

    async def tell(
        self, kind: str, at: int, file: str, *, table: Identifier = DEEP, its: str = UUID, called: str = ""
    ) -> None:
        told = Notification(kind, called or table.name, at, its, file)
        await notify(self.catalog, ROOT, table, told)

    async def version(self, table: Identifier = DEEP) -> str:
        version: str = decoded(await load_table(self.catalog, ROOT, table))["properties"]["version"]
        return version


@pytest.fixture
async def outside(directory: Directory, tmp_path: Path) -> Outside:
    return Outside(await make_external(directory, tmp_path / "files"))


async def test_a_creation_makes_the_table_and_its_namespaces(outside: Outside) -> None:
    file = await outside.write()

    await outside.tell("CREATE", 10, file)

    answer = await load_table(outside.catalog, ROOT, DEEP)
    assert answer.metadata_location == file
    assert decoded(answer)["table-uuid"] == UUID
    assert (await load_namespace(outside.catalog, ROOT, ("a", "b"))).properties == {}
    kinds = [each.kind for each in (await read_changes(outside.catalog, ROOT, start="oldest")).changes]
    assert kinds == ["namespace-created", "namespace-created", "table-created"]


@pytest.mark.parametrize("kind", ["CREATE", "UPDATE"])
async def test_a_newer_notification_updates_the_table_and_keeps_its_id(outside: Outside, kind: str) -> None:
    await outside.tell("UPDATE", 10, await outside.write())
    before = await _id_of(outside.catalog)

    await outside.tell(kind, 11, await outside.write("v2"))

    assert await outside.version() == "v2"
    assert await _id_of(outside.catalog) == before


@pytest.mark.parametrize("kind", ["CREATE", "UPDATE", "DROP"])
@pytest.mark.parametrize("timestamp", [9, 10, -1])
async def test_what_is_not_newer_is_refused(outside: Outside, kind: str, timestamp: int) -> None:
    """I71."""
    await outside.tell("CREATE", 10, await outside.write())
    second = await outside.write("v2")

    with pytest.raises(OutdatedNotification) as refused:
        await outside.tell(kind, timestamp, second)

    assert str(refused.value).startswith("A notification with a newer timestamp has been admitted for table")
    assert await outside.version() == "v1"


async def test_an_old_creation_does_not_bring_a_dropped_table_back(outside: Outside) -> None:
    """I71."""
    file = await outside.write()
    await outside.tell("CREATE", 10, file)
    await outside.tell("DROP", 20, file)

    with pytest.raises(OutdatedNotification):
        await outside.tell("CREATE", 15, file)

    with pytest.raises(NoSuchTable):
        await load_table(outside.catalog, ROOT, DEEP)
    await outside.tell("CREATE", 21, file)
    assert await outside.version() == "v1"


async def test_a_creation_that_comes_after_its_own_drop_is_refused(outside: Outside) -> None:
    """I71."""
    file = await outside.write()

    await outside.tell("DROP", 20, file)

    with pytest.raises(OutdatedNotification):
        await outside.tell("CREATE", 10, file)


async def test_times_are_kept_apart_by_table(outside: Outside) -> None:
    await outside.tell("CREATE", 10, await outside.write())
    other = Identifier(("a", "b"), "u")
    file = await outside.write(at="other", table_uuid=str(uuid.UUID(int=7)))

    await outside.tell("CREATE", 5, file, table=other, its=str(uuid.UUID(int=7)))

    assert await outside.version(other) == "v1"


async def test_what_a_drop_took_can_be_restored(outside: Outside) -> None:
    file = await outside.write()
    await outside.tell("CREATE", 10, file)

    await outside.tell("DROP", 20, file)

    [(_, dropped)] = (await list_dropped(outside.catalog, ROOT, size=5)).entries
    assert dropped.path == ("a", "b", "t")


async def test_of_many_at_once_the_newest_stays(outside: Outside) -> None:
    """I71."""
    files = [await outside.write(f"v{number}") for number in range(1, 9)]

    outcomes = await asyncio.gather(
        *(outside.tell("UPDATE", at, file) for at, file in enumerate(files, start=1)),
        return_exceptions=True,
    )

    assert all(each is None or isinstance(each, OutdatedNotification) for each in outcomes)
    assert await outside.version() == "v8"


async def test_validating_changes_nothing(outside: Outside) -> None:
    before = (await outside.catalog.read()).commit_id

    await outside.tell("VALIDATE", 10, f"{outside.catalog.base.text}/orders/metadata/none.metadata.json")
    await outside.tell("VALIDATE", 10, f"{outside.catalog.base.text}/orders")
    with pytest.raises(LocationRefused):
        await outside.tell("VALIDATE", 10, "file:///etc/metadata.json")

    assert (await outside.catalog.read()).commit_id == before


async def test_the_file_must_be_the_tables(outside: Outside) -> None:
    file = await outside.write()

    with pytest.raises(BadInput) as refused:
        await outside.tell("CREATE", 10, file, its=str(uuid.UUID(int=1)))

    assert refused.value.field == "payload.table-uuid"
    await outside.tell("CREATE", 10, file, its=UUID.upper())


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"location": "file:///etc"}, LocationRefused),
        ({"properties": {"write.data.path": "s3://elsewhere/x"}}, LocationRefused),
        ({"properties": {"cynosure.secret": "x"}}, BadInput),
    ],
)
async def test_a_file_that_reaches_outside_is_refused(
    outside: Outside, more: dict, error: type[Exception]
) -> None:
    file = await outside.write(**more)
    before = (await outside.catalog.read()).commit_id

    with pytest.raises(error):
        await outside.tell("CREATE", 10, file)

    assert (await outside.catalog.read()).commit_id == before


async def test_the_location_of_another_table_is_refused(outside: Outside) -> None:
    await outside.tell("CREATE", 10, await outside.write())
    inside = await outside.write(at="orders/inner", table_uuid=str(uuid.UUID(int=1)))

    with pytest.raises(LocationRefused):
        await outside.tell("CREATE", 10, inside, table=Identifier(("a",), "u"), its=str(uuid.UUID(int=1)))


async def test_a_view_keeps_its_name(outside: Outside, directory: Directory, tmp_path: Path) -> None:
    file = await outside.write()
    await create_namespace(outside.catalog, ROOT, ("a",), {})
    await register_view(outside.catalog, ROOT, Identifier(("a",), "v"), await view_file(outside.catalog))

    for kind in ("CREATE", "VALIDATE"):
        with pytest.raises(ViewExists):
            await outside.tell(kind, 10, file, table=Identifier(("a",), "v"))


@pytest.mark.parametrize(
    ("kind", "more", "field"),
    [
        ("UNKNOWN", {}, "notification-type"),
        ("CREATE", {"called": "other"}, "payload.table-name"),
        ("CREATE", {"timestamp": 1 << 63}, "payload.timestamp"),
    ],
)
async def test_what_says_nothing_or_two_things_is_refused(
    outside: Outside, kind: str, more: dict, field: str
) -> None:
    file = await outside.write()

    with pytest.raises(BadInput) as refused:
        await outside.tell(kind, more.pop("timestamp", 10), file, **more)

    assert refused.value.field == field


async def test_a_missing_file_is_refused(outside: Outside) -> None:
    with pytest.raises(BadInput, match="no metadata file"):
        await outside.tell("CREATE", 10, f"{outside.catalog.base.text}/orders/metadata/none.json")


async def test_internal_catalogs_take_none(directory: Directory, tmp_path: Path) -> None:
    internal = Outside(await make_catalog(directory, tmp_path / "files", "internal"))
    file = await internal.write()

    for kind in ("CREATE", "UPDATE", "DROP", "VALIDATE"):
        with pytest.raises(BadInput, match="Only external catalogs"):
            await internal.tell(kind, 10, file)


async def test_a_table_that_was_dropped_here_comes_back_with_the_next_notification(outside: Outside) -> None:
    await outside.tell("CREATE", 10, await outside.write())
    await drop_table(outside.catalog, ROOT, DEEP)

    await outside.tell("UPDATE", 11, await outside.write("v2"))

    assert await outside.version() == "v2"


async def _id_of(catalog: OpenCatalog) -> int:
    state = await catalog.read()
    target = catalog.table(DEEP)
    return await target.load_id(state, await target.locate(state))
