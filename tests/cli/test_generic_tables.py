"""`cynosure generic-tables …`, and catalogs whose tables another one owns."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.running import Cynosure

PLACE = ("--catalog", "lake", "--namespace", "eu.raw")


@pytest.fixture
def furnished(cynosure: Cynosure) -> Cynosure:
    assert cynosure("catalogs", "create", "lake").code == 0
    for namespace in ("eu", "eu.raw"):
        assert cynosure("namespaces", "create", namespace, "--catalog", "lake").code == 0
    return cynosure


def told(cynosure: Cynosure, *arguments: str) -> Any:
    ended = cynosure(*arguments, "--json")
    assert ended.code == 0, ended.err
    return msgspec.json.decode(ended.out)


def test_a_generic_table_is_created_shown_listed_dropped_and_restored(furnished: Cynosure) -> None:
    location = f"{told(furnished, 'catalogs', 'get', 'lake')['properties']['default-base-location']}/events"
    wanted = ("--format", "delta", "--base-location", location, "--doc", "Raw.", "--property", "k=v")

    made = told(furnished, "generic-tables", "create", "events", *wanted, *PLACE)
    shown = furnished("generic-tables", "get", "events", *PLACE)
    listed = told(furnished, "generic-tables", "list", *PLACE)
    told(furnished, "generic-tables", "delete", "events", *PLACE)
    gone = furnished("generic-tables", "get", "events", *PLACE)
    restored = furnished("tables", "restore", "lake", "eu.raw.events")

    assert made == {
        "name": "events",
        "format": "delta",
        "base-location": location,
        "doc": "Raw.",
        "properties": {"k": "v"},
    }
    assert all(word in shown.out for word in ("delta", location, "Raw.", "v"))
    assert listed == [{"namespace": ["eu", "raw"], "name": "events"}]
    assert gone.code == 1
    assert "Generic table does not exist" in gone.err
    assert "The generic-table eu.raw.events is back." in restored.out


def test_people_read_lines(furnished: Cynosure) -> None:
    made = furnished("generic-tables", "create", "events", "--format", "csv", *PLACE)
    listed = furnished("generic-tables", "list", *PLACE)
    gone = furnished("generic-tables", "drop", "events", *PLACE)

    assert "Generic table events of lake is ready." in made.out
    assert "eu.raw" in listed.out
    assert "Generic table events is gone." in gone.out


def test_an_external_catalog_is_made_and_shown_as_one(cynosure: Cynosure, tmp_path: Path) -> None:
    made = cynosure("catalogs", "create", "theirs", "--type", "external")
    shown = cynosure("catalogs", "get", "theirs")
    refused = cynosure("catalogs", "create", "other", "--type", "neither")

    assert made.code == 0, made.err
    assert "external" in shown.out
    assert refused.code != 0
    assert "type" in refused.err
