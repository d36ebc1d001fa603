"""`cynosure tables export` and `sweep`, without a server."""

import asyncio
import json
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from cynosure.catalog.files.export import name_file
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.common.key_file import open_keyring
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.server.settings import load_settings
from cynosure.server.wiring import open_serving
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.cli.running import Cynosure


class Files(NamedTuple):
    """Metadata files in the directory of the table `t` in the namespace `a.b`."""

    current: Path
    stray: Path
    """Of a commit that never came to be; not written yet."""


@pytest.fixture
def files(cynosure: Cynosure) -> Files:
    assert cynosure("catalogs", "create", "lake").code == 0

    async def create() -> Files:
        settings = load_settings(environment={})
        keyring = cache(lambda: open_keyring(settings.keyring, settings.server.data_dir))
        async with (
            open_persistence(settings.store_url.reveal()) as persistence,
            open_serving(settings, persistence, keyring, sys.stderr) as serving,
        ):
            catalog = await serving.directory.open(DEFAULT_REALM, "lake")
            await create_namespace(catalog, ROOT, ("a.b",), {})
            wanted = CreateTable(namespace=("a.b",), name="t", schema=SCHEMA)
            answer = (await create_table(catalog, ROOT, wanted)).answer
            assert answer.metadata_location is not None
            current = Path(answer.metadata_location.removeprefix("file://"))
            stray = name_file(catalog, 0, persistence.ids.next(), is_packed=False)
        return Files(current, current.with_name(stray))

    return asyncio.run(create())


def test_a_metadata_file_that_vanished_is_written_again(cynosure: Cynosure, files: Files) -> None:
    metadata_file = files.current
    content = metadata_file.read_bytes()
    metadata_file.unlink()

    done = cynosure("tables", "export", "lake", "a.b/t", "--separator", "/")

    assert (done.code, done.out) == (0, f"file://{metadata_file}\n")
    assert metadata_file.read_bytes() == content


@pytest.mark.parametrize("table", ["a.b.t", "t", "", "a.b/x", "a.b/\x1f"])
def test_a_table_that_is_not_there_is_told(cynosure: Cynosure, files: Files, table: str) -> None:
    done = cynosure("tables", "export", "lake", table, "--separator", "/")

    assert done.code == 1
    assert "Traceback" not in done.err
    assert done.err.startswith("Error: ")


def test_a_stray_file_is_shown_then_removed_and_others_stay(cynosure: Cynosure, files: Files) -> None:
    foreign = files.current.with_name("v3.metadata.json")
    for path in (files.stray, foreign):
        path.write_bytes(b"{}")

    young = cynosure("tables", "sweep", "lake")
    shown = cynosure("tables", "sweep", "lake", "--grace", "0s", "--dry-run")
    assert files.stray.exists()
    swept = cynosure("tables", "sweep", "lake", "--grace", "0s", "--json")
    nonsense = cynosure("tables", "sweep", "lake", "--grace", "soon")

    assert "0 stray ones removed" in young.err
    assert shown.out == f"file://{files.stray}\n"
    assert "1 stray ones would be removed" in shown.err
    assert json.loads(swept.out)["strays"] == 1
    assert not files.stray.exists()
    assert files.current.exists()
    assert foreign.exists()
    assert nonsense.code == 1
    assert "Not a duration" in nonsense.err
