"""`cynosure tables export` and `sweep`, without a server."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.cli.main import run
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.server.settings import load_settings
from cynosure.server.wiring import open_directory
from cynosure.testing.small_catalog import ROOT, SCHEMA


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Cynosure = Callable[..., Ended]


@pytest.fixture
def cynosure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cynosure:
    """Runs the entry point with these arguments, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["cynosure", *arguments])
        capfd.readouterr()
        code = 0
        try:
            run()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        return Ended(code, *capfd.readouterr())

    return call


@pytest.fixture
def metadata_file(cynosure: Cynosure) -> Path:
    """The metadata file of the table `t` in the namespace `a.b` of a catalog."""
    assert cynosure("catalogs", "create", "lake").code == 0

    async def create() -> str:
        settings = load_settings(environment={})
        async with (
            open_persistence(settings.store_url.reveal()) as persistence,
            open_directory(settings, persistence) as directory,
        ):
            catalog = await directory.open(DEFAULT_REALM, "lake")
            await create_namespace(catalog, ROOT, ("a.b",), {})
            wanted = CreateTable(namespace=("a.b",), name="t", schema=SCHEMA)
            answer = await create_table(catalog, ROOT, wanted)
        assert answer.metadata_location is not None
        return answer.metadata_location

    assert Identifier(("a.b",), "t")
    return Path(asyncio.run(create()).removeprefix("file://"))


def test_a_metadata_file_that_vanished_is_written_again(cynosure: Cynosure, metadata_file: Path) -> None:
    content = metadata_file.read_bytes()
    metadata_file.unlink()

    done = cynosure("tables", "export", "lake", "a.b/t", "--separator", "/")

    assert (done.code, done.out) == (0, f"file://{metadata_file}\n")
    assert metadata_file.read_bytes() == content


@pytest.mark.parametrize("table", ["a.b.t", "t", "", "a.b/x", "a.b/\x1f"])
def test_a_table_that_is_not_there_is_told(cynosure: Cynosure, metadata_file: Path, table: str) -> None:
    done = cynosure("tables", "export", "lake", table, "--separator", "/")

    assert done.code == 1
    assert "Traceback" not in done.err
    assert done.err.startswith("Error: ")


def test_a_stray_file_is_shown_then_removed_and_a_tables_own_stays(
    cynosure: Cynosure, metadata_file: Path
) -> None:
    number, separator, state = metadata_file.name.removesuffix(".metadata.json").rpartition("-")
    # As of a commit just before, which never came to be.
    stray = metadata_file.with_name(f"{number}{separator}{_earlier(state)}.metadata.json")
    stray.write_bytes(b"{}")
    foreign = metadata_file.with_name("v3.metadata.json")
    foreign.write_bytes(b"{}")

    shown = cynosure("tables", "sweep", "lake", "--grace", "0s", "--dry-run")
    assert stray.exists()
    swept = cynosure("tables", "sweep", "lake", "--grace", "0s", "--json")
    young = cynosure("tables", "sweep", "lake", "--grace", "soon")

    assert shown.out == f"file://{stray}\n"
    assert "1 stray ones would be removed" in shown.err
    assert json.loads(swept.out)["strays"] == 1
    assert not stray.exists()
    assert metadata_file.exists()
    assert foreign.exists()
    assert young.code == 1
    assert "Not a duration" in young.err


def _earlier(state: str) -> str:
    return state
