"""`cynosure migrate --copy` between real servers: a copy of its own, of tables that go on meanwhile.

Holds I124.
"""

import asyncio
import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from pyiceberg.catalog import Catalog

from cynosure.client.tls import NO_TLS
from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential
from tests.federation.real.copied import (
    ROWS,
    add_equality_deletes,
    assert_apart,
    assert_same,
    command_of,
    environment_of,
    make_rich_table,
    migrate,
    open_catalog,
    outcomes,
    reason,
    rows_of,
)
from tests.federation.real.test_chain import connect_to, federate

COMMITS = 6
VIEW = {
    "name": "recent",
    "schema": {
        "type": "struct",
        "schema-id": 0,
        "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
    },
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1_760_000_000_000,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["eu"],
        "representations": [
            {"type": "sql", "sql": "SELECT id FROM orders", "dialect": "spark"},
            {"type": "sql", "sql": "SELECT id FROM orders LIMIT 9", "dialect": "trino"},
        ],
    },
    "properties": {"comment": "the newest"},
}


class Two(NamedTuple):
    """Two servers; the first stands for catalogs of the second."""

    near: CatalogServer
    far: CatalogServer


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    directory = tmp_path_factory.mktemp("copy")

    async def start(processes: Processes) -> Two:
        env = {
            "CYNOSURE_STORAGE__FILE_ROOTS__FAR": str(directory / "far"),
            "CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true",
        }
        return Two(
            *await asyncio.gather(
                *(
                    start_catalog_server(processes, directory, data=directory / name, name=name, env=env)
                    for name in ("near", "far")
                )
            )
        )

    with Processes(directory) as processes:
        yield asyncio.run(start(processes))


class Pair(NamedTuple):
    """A catalog of the second server, the one that stands for it, and one of the first server's own."""

    theirs: str
    ours: str
    source: Catalog
    """Of the second server."""
    http: httpx.Client
    copy: Catalog

    @property
    def words(self) -> tuple[str, ...]:
        return self.theirs, "--into", self.ours, "--copy"


@pytest.fixture
def pair(two: Two) -> Iterator[Pair]:
    theirs, ours = (f"{word}{uuid.uuid4().hex[:8]}" for word in ("theirs", "ours"))

    async def make() -> None:
        await two.far.create_catalog(theirs)
        place = (two.far.warehouse / theirs).as_uri()
        await federate(two.near, theirs, place, {"storageType": "FILE"}, connect_to(two.far, theirs))
        await two.near.create_catalog(ours)

    asyncio.run(make())
    with httpx.Client(
        auth=two.far.login,
        base_url=f"{two.far.root}/v1/{theirs}/",
        trust_env=False,
        verify=NO_TLS,
        timeout=30,
    ) as http:
        yield Pair(theirs, ours, open_catalog(two.far, theirs), http, open_catalog(two.near, ours))


def test_a_copy_has_every_snapshot_and_outlives_its_source(two: Two, pair: Pair, tmp_path: Path) -> None:
    pair.source.create_namespace("eu", {"owner": "sales"})
    sources = {
        version: make_rich_table(pair.source, pair.http, f"eu.v{version}", version=version)
        for version in (1, 2, 3)
    }
    pair.http.post("namespaces/eu/views", json=VIEW).raise_for_status()
    report = tmp_path / "copied.json"

    dry = migrate(two.near, *pair.words, "--dry-run")
    assert dry["code"] == 0, dry["err"]
    assert set(outcomes(dry).values()) == {"ready"}
    assert "snapshots" in reason(dry, "eu.v2")
    assert pair.copy.list_namespaces() == []

    done = migrate(two.near, *pair.words, "--yes", "--report", str(report))
    assert done["code"] == 0, done["err"]
    assert outcomes(done) == dict.fromkeys(("eu", "eu.v1", "eu.v2", "eu.v3", "eu.recent"), "copied")
    assert json.loads(report.read_text()) == done["objects"]
    assert pair.copy.load_namespace_properties("eu")["owner"] == "sales"
    rows = {version: rows_of(source) for version, source in sources.items()}
    last = {version: rows[version][each.current_snapshot().snapshot_id] for version, each in sources.items()}
    assert {version: len(found) for version, found in last.items()} == {1: 12, 2: 10, 3: 11}
    assert len(sources[2].metadata.statistics) == 1
    for version, source in sources.items():
        assert source.metadata.format_version == version
        copy = pair.copy.load_table(f"eu.v{version}")
        assert_same(source, copy)
        assert_apart(copy, str(two.far.data))
        assert copy.properties["owner"] == "somebody"
        assert rows_of(copy) == rows[version]
    view = pair.copy.load_view("eu.recent")
    assert [each.root.dialect for each in view.current_version().representations] == ["spark", "trino"]
    assert view.metadata.properties["comment"] == "the newest"

    # It ends with 0, and says whether the source went on.
    sources[1].append(ROWS)
    again = migrate(two.near, *pair.words, "--yes")
    assert again["code"] == 0, again["err"]
    assert set(outcomes(again).values()) == {"there"}
    assert "gone on since" in reason(again, "eu.v1")
    assert "gone on since" not in reason(again, "eu.v2")

    # Nothing of the source is needed, and the copy goes on as any table.
    shutil.rmtree(two.far.warehouse / pair.theirs)
    for version in sources:
        copy = pair.copy.load_table(f"eu.v{version}")
        assert rows_of(copy) == rows[version]
    copy = pair.copy.load_table("eu.v2")
    before = copy.scan().to_arrow().num_rows
    copy.append(ROWS)
    copy.delete("id = 9")
    assert copy.scan().to_arrow().num_rows == before + len(ROWS) - 2


def test_equality_deletes_come_along_byte_for_byte(two: Two, pair: Pair) -> None:
    pair.source.create_namespace("eu")
    pair.source.create_table("eu.t", ROWS.schema, properties={"format-version": "2"}).append(ROWS)
    source = add_equality_deletes(pair.source, pair.http, "eu.t")

    # Through the operator socket.
    told = asyncio.run(two.near.run_cli("migrate", *pair.words, "--table", "eu.t", "--yes", "--json"))

    assert outcomes(json.loads(told)) == {"eu": "copied", "eu.t": "copied"}
    copy = pair.copy.load_table("eu.t")
    assert_apart(copy, str(two.far.data))
    [one], [other] = (
        [
            entry.data_file
            for manifest in table.current_snapshot().manifests(table.io)
            for entry in manifest.fetch_manifest_entry(table.io)
            if entry.data_file.content == 2
        ]
        for table in (source, copy)
    )
    assert one.equality_ids == other.equality_ids
    paths = [Path(each.file_path.removeprefix("file://")) for each in (one, other)]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_killed_in_the_middle_nothing_is_seen_and_the_same_command_goes_on(two: Two, pair: Pair) -> None:
    pair.source.create_namespace("eu")
    table = pair.source.create_table("eu.t", ROWS.schema)
    for _ in range(COMMITS):
        table.append(ROWS)
    place = two.near.warehouse / pair.ours
    [last] = [
        Path(entry.data_file.file_path.removeprefix("file://"))
        for manifest in table.current_snapshot().manifests(table.io)
        if manifest.added_snapshot_id == table.current_snapshot().snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    content = last.read_bytes()
    last.unlink()
    # Whoever opens it waits, so the command stands before its last file when it is killed.
    os.mkfifo(last)
    running = subprocess.Popen(
        command_of(two.near, *pair.words, "--yes"),
        env=environment_of(two.near),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while len(list(place.rglob("*.parquet"))) < COMMITS - 1 and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        running.kill()
        running.wait()
    last.unlink()
    last.write_bytes(content)
    written = {each: each.stat().st_mtime_ns for each in place.rglob("*.parquet")}
    assert len(written) == COMMITS - 1
    assert not pair.copy.table_exists("eu.t")

    done = migrate(two.near, *pair.words, "--yes")

    assert done["code"] == 0, done["err"]
    told = reason(done, "eu.t")
    assert f"{len(written)} were there already" in told
    assert {each: each.stat().st_mtime_ns for each in written} == written
    copy = pair.copy.load_table("eu.t")
    assert_same(pair.source.load_table("eu.t"), copy)
    assert_apart(copy, str(two.far.data))
    assert rows_of(copy) == rows_of(table)
    assert len(list(place.glob("eu/*"))) == 1


def test_files_that_vanish_meanwhile_are_an_obstacle_and_others_go_on(two: Two, pair: Pair) -> None:
    pair.source.create_namespace("eu")
    for name in ("a", "b"):
        pair.source.create_table(f"eu.{name}", ROWS.schema).append(ROWS)
    pair.source.create_table("eu.empty", ROWS.schema)
    place = Path(pair.source.load_table("eu.a").location().removeprefix("file://"))
    [gone] = place.rglob("*.parquet")
    content = gone.read_bytes()
    gone.unlink()

    done = migrate(two.near, *pair.words, "--yes")

    assert done["code"] == 1
    assert outcomes(done) == {"eu": "copied", "eu.a": "obstacle", "eu.b": "copied", "eu.empty": "copied"}
    assert pair.copy.load_table("eu.empty").snapshots() == []
    assert "Run it again" in reason(done, "eu.a")
    assert not pair.copy.table_exists("eu.a")
    gone.write_bytes(content)
    again = migrate(two.near, *pair.words, "--yes")
    assert again["code"] == 0, again["err"]
    assert outcomes(again) == {"eu": "there", "eu.a": "copied", "eu.b": "there", "eu.empty": "there"}


def test_another_table_of_the_name_is_in_the_way(two: Two, pair: Pair) -> None:
    pair.source.create_namespace("eu")
    for name in ("a", "b"):
        pair.source.create_table(f"eu.{name}", ROWS.schema).append(ROWS)
    pair.copy.create_namespace("eu")
    pair.copy.create_table("eu.a", ROWS.schema)

    stopped = migrate(two.near, *pair.words, "--yes")
    assert stopped["code"] == 1
    assert outcomes(stopped) == {"eu": "there", "eu.a": "obstacle", "eu.b": "ready"}
    assert "has another table of this name" in reason(stopped, "eu.a")
    assert not pair.copy.table_exists("eu.b")

    done = migrate(two.near, *pair.words, "--yes", "--leave-behind")
    assert done["code"] == 0, done["err"]
    assert outcomes(done) == {"eu": "there", "eu.a": "left-behind", "eu.b": "copied"}
    # A copy that has another name by now keeps its place, and there is another one.
    pair.copy.rename_table("eu.b", "eu.c")
    done = migrate(two.near, *pair.words, "--yes", "--table", "eu.b")
    assert done["code"] == 0, done["err"]
    tables = [pair.copy.load_table(f"eu.{name}") for name in ("b", "c")]
    assert [each.scan().to_arrow().num_rows for each in tables] == [len(ROWS), len(ROWS)]
    assert tables[0].location() == f"{tables[1].location()}-2"
    named = ("--table", "eu.none", "--namespace", "none")
    missing = migrate(two.near, *pair.words, "--yes", "--leave-behind", *named)
    assert missing["code"] == 1
    assert outcomes(missing) == {"none": "obstacle", "eu": "there", "eu.none": "obstacle"}


def test_few_rights_are_enough(two: Two, pair: Pair) -> None:
    """To read one table there, and to create tables in one namespace here."""
    pair.source.create_namespace("eu")
    for name in ("t", "u"):
        pair.source.create_table(f"eu.{name}", ROWS.schema).append(ROWS)
    pair.copy.create_namespace("eu")

    async def prepare() -> Credential:
        name, there = f"u{uuid.uuid4().hex[:8]}", ("eu",)
        async with two.near.client() as http:
            await http.get(f"/api/catalog/v1/{pair.theirs}/namespaces/eu/tables/t")
            admin = Admin(http)
            reading = [Grant(each, there, "t") for each in ("TABLE_READ_DATA", "TABLE_READ_PROPERTIES")]
            user = await admin.create_user(name, pair.theirs, *reading)
            await admin.create_catalog_role(pair.ours, "writers")
            await admin.assign_catalog_role(pair.ours, "writers", f"{name}_role")
            for each in ("TABLE_CREATE", "TABLE_WRITE_DATA", "TABLE_READ_PROPERTIES"):
                await admin.grant(pair.ours, "writers", Grant(each, there))
        return user

    user = asyncio.run(prepare())
    done = migrate(two.near, *pair.words, "--table", "eu.t", "--table", "eu.u", "--yes", credential=user)
    assert done["code"] == 1
    done = migrate(two.near, *pair.words, "--table", "eu.t", "--yes", credential=user)
    assert done["code"] == 0, (done["err"], done["objects"])
    assert rows_of(pair.copy.load_table("eu.t")) == rows_of(pair.source.load_table("eu.t"))


def test_who_may_not_read_learns_nothing_and_a_row_filter_is_in_the_way(two: Two, pair: Pair) -> None:
    pair.source.create_namespace("eu")
    pair.source.create_table("eu.t", ROWS.schema).append(ROWS)
    name = f"u{uuid.uuid4().hex[:8]}"

    async def prepare() -> tuple[Credential, Credential]:
        async with two.near.client() as http:
            await http.get(f"/api/catalog/v1/{pair.theirs}/namespaces/eu/tables/t")
            admin = Admin(http)
            stranger = await admin.create_user(f"{name}x", pair.ours)
            reading = [Grant(each, ("eu",), "t") for each in ("TABLE_READ_DATA", "TABLE_READ_PROPERTIES")]
            filtered = await admin.create_user(name, pair.theirs, *reading)
            base = f"/api/catalog/polaris/v1/{pair.theirs}"
            await _create_namespace(http, pair.theirs)
            content = json.dumps({"enable": True, "filter": "id = 1", "roles": [f"{name}_role"]})
            body = {"name": "few", "type": "cynosure.row-filter", "content": content}
            made = await http.post(f"{base}/namespaces/rules/policies", json=body)
            assert made.status_code == 200, made.text
            target = {"target": {"type": "table-like", "path": ["eu", "t"]}}
            made = await http.put(f"{base}/namespaces/rules/policies/few/mappings", json=target)
            assert made.is_success, made.text
            return stranger, filtered

    stranger, filtered = asyncio.run(prepare())
    words = (*pair.words, "--yes", "--table")
    refused = migrate(two.near, *words, "eu.t", credential=stranger)
    named = migrate(two.near, *words, "eu.none", credential=stranger)
    assert (refused["code"], named["code"]) == (1, 1)
    assert refused["err"].replace("eu.t", "X") == named["err"].replace("eu.none", "X")
    assert reason(refused, "eu.t") == reason(named, "eu.none")

    theirs = migrate(two.near, *words, "eu.t", "--leave-policies", credential=filtered)
    assert theirs["code"] == 1
    assert "counts for you" in reason(theirs, "eu.t")
    ours = migrate(two.near, *words, "eu.t")
    assert ours["code"] == 1
    assert "rules.few" in reason(ours, "eu.t")
    assert not pair.copy.table_exists("eu.t")
    seen_to = migrate(two.near, *words, "eu.t", "--leave-policies")
    assert seen_to["code"] == 0, seen_to["err"]
    assert "policies that stay behind: rules.few" in reason(seen_to, "eu.t")


async def _create_namespace(http: httpx.AsyncClient, catalog: str) -> None:
    made = await http.post(f"/api/catalog/v1/{catalog}/namespaces", json={"namespace": ["rules"]})
    assert made.status_code == 200, made.text
