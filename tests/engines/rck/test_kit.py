"""Iceberg's REST compatibility kit passes, as it ships and with all that it leaves off turned on.

A maintainer must not break: a test of the kit that is not enabled is named here with its reason, and one that
fails by design fails for that reason.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.login import Credential
from tests.engines.rck.kit import KitResult, run_kit
from tests.engines.rck.target import FAILS_BY_DESIGN, KitTarget, serve_for_kit

pytestmark = pytest.mark.timeout(600)

NAMES = (Path(__file__).parent / "kit-tests.txt").read_text().splitlines()
MODES = ("stock", "strict")

NO_EMPTY_NAMESPACE = "the empty namespace is not one: tables and views live in namespaces with a name"
NOT_IN_STOCK = "the stock kit leaves it off for every server"
SKIPPED = {
    **dict.fromkeys(
        [
            (mode, name)
            for mode in MODES
            for name in (
                "tables.createAndDropEmptyNamespace",
                "tables.listNamespacesWithEmptyNamespace",
                "tables.listTablesInEmptyNamespace",
                "tables.namespacePropertiesOnEmptyNamespace",
                "views.listViewsInEmptyNamespace",
            )
        ],
        NO_EMPTY_NAMESPACE,
    ),
    **dict.fromkeys(
        [(mode, "tables.createTableInUniqueLocation") for mode in MODES],
        "disabled in the kit: it needs another configuration of the server for this one test",
    ),
    **dict.fromkeys(
        [
            ("stock", "tables.testDropNamespaceWithNestedNamespace"),
            ("stock", "tables.testListNestedNamespaces"),
            ("stock", "tables.testNamespaceWithDot"),
            ("stock", "tables.testNamespaceWithSlash"),
            ("stock", "tables.testTableNameWithDot"),
            ("stock", "tables.testTableNameWithSlash"),
        ],
        NOT_IN_STOCK,
    ),
}

ALWAYS_SKIPPED = {name for name in NAMES if all((mode, name) in SKIPPED for mode in MODES)}

Results = dict[tuple[str, str], KitResult]


class FailedByDesign(Exception):
    """A test of the kit demands what we promise not to do."""


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KitTarget]:
    with serve_for_kit(tmp_path_factory.mktemp("rck")) as target:
        yield target


@pytest.fixture(scope="session")
def results(target: KitTarget) -> Results:
    """What the kit says with root's credentials."""
    catalog = target.to_rest()
    lines = run_kit(catalog.uri, catalog.properties, is_strict=True)
    return {(mode, result.name): result for result in lines for mode in result.modes}


def mark(name: str) -> object:
    if name not in FAILS_BY_DESIGN:
        return name
    reason = FAILS_BY_DESIGN[name]
    return pytest.param(name, marks=pytest.mark.xfail(raises=FailedByDesign, strict=True, reason=reason))


@pytest.mark.parametrize("name", [mark(name) for name in NAMES if name not in ALWAYS_SKIPPED])
def test_an_enabled_test_passes_in_every_mode(results: Results, name: str):
    for mode in MODES:
        if (mode, name) in SKIPPED:
            continue
        result = results[mode, name]
        # It expects an error and gets none; any other failure is one.
        if name in FAILS_BY_DESIGN and result.outcome == "failed" and "to raise a throwable" in result.reason:
            raise FailedByDesign(result.reason)
        assert result.outcome == "passed", f"{mode}: {result.reason}\n{result.trace}"


def test_the_kit_has_the_tests_that_are_listed_here_and_no_other(results: Results):
    assert set(results) == {(mode, name) for mode in MODES for name in NAMES}


def test_what_is_skipped_is_exactly_what_is_listed(results: Results):
    assert {key for key, result in results.items() if result.outcome == "skipped"} == set(SKIPPED)


def test_the_kit_fails_closed_for_a_principal_without_grants(target: KitTarget):
    """It does not come to its first test; operation by operation: ../test_without_rights.py."""

    async def create_nobody() -> Credential:
        async with target.server.client() as http:
            return await Admin(http).create_principal("nobody")

    catalog = target.to_rest(asyncio.run(create_nobody()))

    tried = list(run_kit(catalog.uri, catalog.properties))

    assert {each.test for each in tried} == {
        "RESTCompatibilityKitCatalogTests",
        "RESTCompatibilityKitViewCatalogTests",
    }
    assert {each.outcome for each in tried} == {"failed"}
    assert all("Forbidden" in each.reason for each in tried), [each.reason for each in tried]
