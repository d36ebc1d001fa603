"""Pages about federation name files, settings, properties, differences, metrics and routes that there are."""

import re
from pathlib import Path
from typing import cast, get_args

import pytest

from cynosure.api.catalogs import Catalogs
from cynosure.api.management.context import BASE
from cynosure.api.management.migration import migration_routes
from cynosure.api.management.remotes import remote_routes
from cynosure.catalog.connection import ConnectionType
from cynosure.catalog.federated_properties import NAMES, PREFIX
from cynosure.federation.guard.metrics import Seen
from cynosure.federation.reconciling.drift import Difference
from cynosure.federation.settings import FederationSettings

ROOT = Path(__file__).resolve().parents[2]
CONCEPT = (ROOT / "docs/concepts/federation.md").read_text()
GUIDE = (ROOT / "docs/guides/federation.md").read_text()
OPERATIONS = (ROOT / "docs/operations/federation.md").read_text()
PAGES = {"concept": CONCEPT, "guide": GUIDE, "operations": OPERATIONS}
COMPONENTS = """
delegator SupportsCredentialDelegation getAccessConfig getLocationsAllowedToBeAccessed Pre-Passthrough
Post-Passthrough PartialPolarisResolutionManifest BackfilledPolarisResolutionManifest Facade FileIO
FileIOFactory CatalogEntity Freshness-aware caching shredding snapshots=refs Migration
"""
"""Of seed 003."""
STAGES = sorted(
    f"fed/stages/{path.name}"
    for path in (ROOT / "src/cynosure/federation/stages").glob("*.py")
    if path.name != "__init__.py"
)


def test_every_part_of_the_design_document_has_a_counterpart() -> None:
    mapped = CONCEPT.partition("## The design document's parts, and ours")[2]
    theirs = " ".join(re.findall(r"^\| (.+?) \| ", mapped, re.MULTILINE))

    assert [each for each in COMPONENTS.split() if each not in theirs] == []


def test_every_stage_is_told_with_its_test() -> None:
    rows = re.findall(r"^\| .*\| `tests/[\w/.]+` \|$", CONCEPT, re.MULTILINE)

    assert [each for each in STAGES if not any(f"`{each}`" in row for row in rows)] == []


def test_files_and_tests_exist() -> None:
    tests = re.findall(r"`(tests/[\w/.]+)`", CONCEPT)
    files = re.findall(r"`((?:fed|federation|catalog|api)/[\w/]+(?:\.py|/))`", CONCEPT)
    places = [ROOT / each for each in tests]
    places += [ROOT / "src/cynosure" / re.sub(r"^fed/", "federation/", each) for each in files]

    assert len(tests) > 30, "they are found"
    assert len(files) > 30, "they are found"
    assert [str(each) for each in places if not each.exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_settings_and_properties_exist(page: str) -> None:
    known = {f"federation.{each}" for each in FederationSettings.__struct_fields__}
    settings = set(re.findall(r"`(federation\.[a-z_]+)(?:`|=)", PAGES[page]))
    properties = set(re.findall(rf"`({re.escape(PREFIX)}[a-z-]+)", PAGES[page]))

    assert settings - known == set()
    assert properties - set(NAMES) == set()


def test_every_property_and_kind_is_in_the_guide() -> None:
    kinds = get_args(ConnectionType)

    assert [each for each in NAMES if f"`{each}`" not in GUIDE] == []
    assert [each for each in kinds if f"--connection-type {each}" not in GUIDE] == []


def test_every_difference_and_metric_is_explained() -> None:
    known = (ROOT / "docs/reference/metrics.md").read_text()
    metrics = set(re.findall(r"`(cynosure_federation_\w+)`", OPERATIONS))

    assert [each for each in get_args(Difference) if f"`{each}`" not in OPERATIONS] == []
    assert [each for each in get_args(Seen) if f"`{each}`" not in OPERATIONS] == []
    assert len(metrics) > 5, "they are found"
    assert [each for each in metrics if each not in known] == []


def test_every_route_is_on_the_page() -> None:
    page = (ROOT / "docs/reference/management-api.md").read_text()
    catalogs = cast(Catalogs, None)

    routes = [*remote_routes(catalogs), *migration_routes(catalogs)]
    shown = [
        f"{each.method} {each.path.removeprefix(BASE)}".replace("{catalogName}", "NAME") for each in routes
    ]

    assert len(shown) == 3, "they are found"
    assert [each for each in shown if f"`{each}`" not in page] == []
