"""Damaged data and wrong values: each names its cause and the fix, and changes nothing."""

import os
import random
import shutil
import sqlite3
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cynosure.common.errors import (
    BadInput,
    BadPageToken,
    CorruptObject,
    CynosureError,
    Damaged,
    Expired,
    Misconfigured,
    MissingObject,
    NewerFormat,
    NotFound,
    TooLarge,
    UnknownType,
)
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.listing import list_page
from cynosure.persistence.settings import GcSettings, PersistenceSettings
from cynosure.persistence.spi import ObjId, Row
from cynosure.persistence.tasks.row import TASK, TaskRow
from cynosure.server.store_process import refuse_missing_file
from cynosure.testing.storm.ledger import Ledger
from cynosure.testing.storm.writers import MAIN, Storm, open_storm, read_counts, write_some
from cynosure.testing.workload import ITEM, Items

pytestmark = pytest.mark.anyio

# Everything is old enough to be collected, and every page token has expired.
BRIEF = PersistenceSettings(
    commit_deadline=timedelta(milliseconds=1),
    page_token_life=timedelta(milliseconds=2),
    gc=GcSettings(grace=timedelta(milliseconds=3)),
)


class FileStore(NamedTuple):
    """A store in a SQLite file with a history in it."""

    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:{self.path}"

    def contents(self) -> list[tuple[Any, ...]]:
        """Everything except node leases, which every start changes."""
        with closing(sqlite3.connect(self.path)) as connection:
            rows = connection.execute("SELECT * FROM objects WHERE type <> 'node-lease' ORDER BY 1, 2, 3, 4")
            return [*rows, *connection.execute("SELECT * FROM refs ORDER BY 1, 2, 3")]

    def execute(self, statement: str, *values: object) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            assert connection.execute(statement, values).rowcount != 0
            connection.commit()

    def rewrite_head(self, change: Callable[[bytes], bytes]) -> None:
        """Change the bytes of the head's commit object."""
        with closing(sqlite3.connect(self.path)) as connection:
            (head,) = connection.execute(
                "SELECT head FROM refs WHERE catalog = ?", (MAIN.catalog,)
            ).fetchone()
            (blob,) = connection.execute("SELECT blob FROM objects WHERE id = ?", (head,)).fetchone()
            connection.execute("UPDATE objects SET blob = ? WHERE id = ?", (change(blob), head))
            connection.commit()


@pytest.fixture(scope="module")
async def template(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> Path:
    """A file that is closed, for tests to copy."""
    directory = tmp_path_factory.mktemp("template")
    path = directory / "store.db"
    async with open_storm(f"sqlite:{path}") as persistence:
        ledger = Ledger(directory / "ledger.jsonl")
        await write_some(persistence, ledger, Storm("s", items=20), random.Random(5), 60)
        ledger.close()
    return path


@pytest.fixture
def file_store(template: Path, tmp_path: Path) -> FileStore:
    shutil.copyfile(template, tmp_path / "store.db")
    return FileStore(tmp_path / "store.db")


def assert_plain(error: CynosureError, cause: str, fix: str) -> None:
    assert cause in f"{error.message} {error.details}"
    assert fix in error.fix


# --- damaged and newer data ------------------------------------------------------------------------


def flip_a_bit(blob: bytes) -> bytes:
    return blob[:-3] + bytes([blob[-3] ^ 4]) + blob[-2:]


def set_format(number: int) -> Callable[[bytes], bytes]:
    return lambda blob: bytes([number]) + blob[1:]


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], type[Damaged], str, str]] = {
    "a flipped bit": (flip_a_bit, CorruptObject, "checksum", "backup"),
    "cut short": (lambda blob: blob[:7], CorruptObject, "shorter than its header", "backup"),
    "empty": (lambda blob: b"", CorruptObject, "shorter than its header", "backup"),
    "a newer format": (set_format(2), NewerFormat, "newer format", "Start the newer version"),
    "no format": (set_format(0), CorruptObject, "no known format", "backup"),
    "parts that are not there": (
        lambda blob: struct.pack(">BBIQI", 1, 2, 4_000_000_000, 1, 0) + b"\0\0\0\0",
        CorruptObject,
        "index of parts",
        "backup",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_head_is_named_by_reads_writes_and_collections(
    file_store: FileStore, damage: str
) -> None:
    """I2, I20."""
    change, kind, cause, fix = DAMAGE[damage]
    file_store.rewrite_head(change)
    before = file_store.contents()

    async with open_persistence(file_store.url, BRIEF) as persistence:
        committer = persistence.committer(MAIN)

        async def collect() -> object:
            return await persistence.collector().run(is_dry_run=True)

        for attempt in (committer.read, lambda: committer.commit(Items(persistence.ids).add("t")), collect):
            with pytest.raises(kind) as refused:
                await attempt()
            assert_plain(refused.value, cause, fix)
        (ref,) = [ref for ref in await persistence.backend.list_refs() if ref.key == MAIN]
        report = await check_reference(committer.store, ref)
    assert any(cause in problem for problem in report.problems)
    assert file_store.contents() == before


async def test_a_collection_that_meets_damage_deletes_nothing(file_store: FileStore) -> None:
    """I16, I20."""
    file_store.rewrite_head(flip_a_bit)
    before = [row for row in file_store.contents() if len(row) == 7 and isinstance(row[4], bytes)]

    async with open_persistence(file_store.url, BRIEF) as persistence:
        with pytest.raises(CorruptObject):
            await persistence.collector().run()

    after = [row for row in file_store.contents() if len(row) == 7 and isinstance(row[4], bytes)]
    assert [row for row in before if row[2] in ("commit", "index-node", ITEM.name)] == [
        row for row in after if row[2] in ("commit", "index-node", ITEM.name)
    ]


async def test_a_missing_object_is_named_and_what_does_not_need_it_goes_on(file_store: FileStore) -> None:
    async with open_storm(file_store.url) as persistence:
        counts = await read_counts((await persistence.committer(MAIN).read()).state)
        value = await (await persistence.committer(MAIN).read()).state.find("names", encode_key("item-3"))
        assert value is not None
    file_store.execute("DELETE FROM objects WHERE id = ?", int.from_bytes(value[:8], "big"))

    async with open_storm(file_store.url) as persistence:
        committer, items = persistence.committer(MAIN), Items(persistence.ids)
        with pytest.raises(MissingObject) as refused:
            await committer.commit(items.add("item-3"))
        outcome = await committer.commit(items.add("item-4"))

    assert_plain(refused.value, ITEM.name, "store check")
    assert outcome.result == counts["item-4"] + 1


@pytest.mark.parametrize(
    ("statement", "kind", "cause"),
    [
        ("PRAGMA user_version = 99", NewerFormat, "newer version"),
        ("PRAGMA application_id = 1", Misconfigured, "another program"),
        ("DELETE FROM objects WHERE type = 'store-info'", Misconfigured, "empty"),
    ],
)
async def test_a_store_of_another_kind_or_version_is_refused_untouched(
    file_store: FileStore, statement: str, kind: type[CynosureError], cause: str
) -> None:
    """I20."""
    file_store.execute(statement)
    before = file_store.path.read_bytes()

    with pytest.raises(kind) as refused:
        async with open_persistence(file_store.url):
            pytest.fail("opened")

    assert_plain(refused.value, cause, "")
    assert refused.value.fix
    assert file_store.path.read_bytes() == before


async def test_objects_of_a_type_that_is_not_installed_are_named_and_kept(file_store: FileStore) -> None:
    """I17, I20."""
    file_store.execute("UPDATE objects SET type = 'from-elsewhere', created_us = 1 WHERE type = ?", ITEM.name)
    before = file_store.contents()

    async with open_persistence(file_store.url) as persistence:
        with pytest.raises(UnknownType) as refused:
            persistence.types.get("from-elsewhere")
        await persistence.collector().run()

    assert_plain(refused.value, "from-elsewhere", "Install the package")
    kept = [row for row in file_store.contents() if row[2] == "from-elsewhere"]
    assert kept == [row for row in before if row[2] == "from-elsewhere"]


# --- values ----------------------------------------------------------------------------------------


async def test_what_does_not_fit_a_row_is_refused_or_split(file_store: FileStore) -> None:
    """I2."""
    async with open_storm(file_store.url) as persistence:
        limit = persistence.backend.limits.row_bytes
        store = persistence.store(MAIN.realm, MAIN.catalog)
        before = file_store.contents()
        row = Row(store.key(ITEM, ObjId(1)), bytes(limit + 1), created_us=1)
        with pytest.raises(TooLarge) as too_large:
            await persistence.backend.write([row])
        noise = random.Random(1).randbytes(limit + 1)
        with pytest.raises(TooLarge) as updateable:
            await store.insert(TASK, ObjId(1), TaskRow(name="t", progress=noise))
        assert file_store.contents() == before

        payload = random.Random(2).randbytes(3 * limit)
        await persistence.committer(MAIN).commit(Items(persistence.ids, payload=payload).create("large"))
    async with open_storm(file_store.url) as persistence:
        state = (await persistence.committer(MAIN).read()).state
        value = await state.find("names", encode_key("large"))
        assert value is not None
        (item,) = await state.load_many(ITEM, [ObjId(int.from_bytes(value[:8], "big"))])

    assert_plain(too_large.value, "larger than this database stores", "parts")
    assert_plain(updateable.value, "must fit into one row", "immutable objects")
    assert item.payload == payload


BAD_URLS = {
    "": ("does not begin with a scheme", "sqlite:"),
    "store.db": ("does not begin with a scheme", "sqlite:"),
    "mysql://u:hunter2@h/db": ("No installed package", "sqlite:"),
    "sqlite:": ("does not name a file", "sqlite:PATH"),
    "sqlite:///x.db": ("does not name a file", "sqlite:PATH"),
    "sqlite:x.db?turbo=hunter2": ("no such option", "busy_timeout_s"),
    "sqlite:x.db?busy_timeout_s=hunter2": ("not a number", "busy_timeout_s"),
    "sqlite:no-such-folder/x.db": ("does not exist", "mkdir -p"),
    "sqlite:.": ("is a directory", "Name a file"),
    "postgresql://u:hunter2@h:port/db": ("cannot be read", "percent-encode"),
    "postgresql://u:hunter2@h/db?schema=A-b": ("not a plain name", "schema="),
    "postgresql://u:x?Hunter2&y@h/db": ("cannot be read", "percent-encode"),
    "postgresql://u@h/db?Hunter2=1": ("no such option", "%3F"),
}


@pytest.mark.parametrize("url", BAD_URLS)
async def test_a_wrong_url_says_what_would_be_right_and_keeps_its_secret(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I21."""
    cause, fix = BAD_URLS[url]
    monkeypatch.chdir(tmp_path)

    with pytest.raises(Misconfigured) as refused:
        async with open_persistence(url, initialise=True):
            pytest.fail("opened")

    assert_plain(refused.value, cause, fix)
    assert "unter2" not in str(refused.value)
    assert os.listdir(tmp_path) == []


def test_looking_at_a_file_finds_it_also_when_its_name_is_percent_encoded(tmp_path: Path) -> None:
    (tmp_path / "a b.db").touch()

    refuse_missing_file(f"sqlite:{tmp_path}/a%20b.db?busy_timeout_s=1")
    with pytest.raises(NotFound) as refused:
        refuse_missing_file(f"sqlite:{tmp_path}/a%2520b.db")

    assert_plain(refused.value, "a%20b.db", "store init")


# --- page tokens -----------------------------------------------------------------------------------

Misuse = Callable[[Persistence, str], Awaitable[object]]


def token_misuses() -> Iterator[tuple[str, Misuse, type[CynosureError]]]:
    def asking(index: str = "names", prefix: bytes = b"", change: Callable[[str], str] = str) -> Misuse:
        async def ask(persistence: Persistence, token: str) -> object:
            return await list_page(
                persistence.committer(MAIN),
                persistence.page_tokens,
                index=index,
                prefix=prefix,
                size=3,
                token=change(token),
            )

        return ask

    yield (
        "forged",
        asking(change=lambda token: token[:20] + ("A" if token[20] != "A" else "B") + token[21:]),
        BadPageToken,
    )
    yield "truncated", asking(change=lambda token: token[: len(token) // 2]), BadPageToken
    yield "not a token", asking(change=lambda _: "%%%"), BadPageToken
    yield "of another index", asking(index="ids"), BadPageToken
    yield "of another prefix", asking(prefix=b"i"), BadPageToken


@pytest.mark.parametrize(("misuse", "kind"), [pytest.param(m, k, id=n) for n, m, k in token_misuses()])
async def test_a_page_token_that_is_not_of_this_listing_is_refused(
    file_store: FileStore, misuse: Misuse, kind: type[CynosureError]
) -> None:
    """I13."""
    async with open_storm(file_store.url) as persistence:
        token = await first_token(persistence)
        before = file_store.contents()
        with pytest.raises(kind) as refused:
            await misuse(persistence, token)

    assert_plain(refused.value, "page token", "list again")
    assert file_store.contents() == before


async def test_a_page_token_of_another_store_or_time_is_refused(
    file_store: FileStore, tmp_path: Path
) -> None:
    """I13."""
    async with open_storm(file_store.url, BRIEF) as persistence:
        expired = await first_token(persistence)
    async with open_storm(file_store.url) as persistence:
        ours = await first_token(persistence)
        with pytest.raises(Expired) as too_late:
            await next_page(persistence, expired)
    async with open_storm(f"sqlite:{tmp_path}/other.db") as persistence:
        with pytest.raises(BadPageToken) as foreign:
            await next_page(persistence, ours)

    assert_plain(too_late.value, "expired", "List again")
    assert_plain(foreign.value, "not issued for this listing", "list again")


@pytest.mark.parametrize("size", [0, 1_001])
async def test_a_page_size_out_of_range_is_refused(file_store: FileStore, size: int) -> None:
    async with open_storm(file_store.url) as persistence:
        with pytest.raises(BadInput) as refused:
            await next_page(persistence, None, size=size)

    assert_plain(refused.value, "page size", "Choose 1 to 1000")


async def first_token(persistence: Persistence) -> str:
    token = (await next_page(persistence, None)).next_token
    assert token is not None
    return token


async def next_page(persistence: Persistence, token: str | None, size: int = 3):
    return await list_page(
        persistence.committer(MAIN),
        persistence.page_tokens,
        index="names",
        prefix=b"",
        size=size,
        token=token,
    )
