"""Our description serves all that the extensions of Apache Polaris promise."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from cynosure.api.iceberg.config import BASE
from cynosure.api.openapi import describe_routes
from tests.api.polaris.documents import load_document
from tests.api.superset import Comparison
from tests.api.world import open_world

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def ours(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Any]]:
    async with open_world(tmp_path_factory.mktemp("world")) as world:
        document = describe_routes(world.service.routes, title="t", version="1", has_keys=True)
        yield msgspec.json.decode(msgspec.json.encode(document))


async def test_the_description_is_a_valid_one(ours: dict[str, Any]) -> None:
    assert list(OpenAPIV31SpecValidator(ours).iter_errors()) == []


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("polaris-generic-tables-api.yaml", 10),
        ("polaris-notifications-api.yaml", 6),
        ("polaris-policy-apis.yaml", 20),
    ],
)
async def test_ours_is_a_superset_of_the_polaris_document(
    ours: dict[str, Any], specs: Path, name: str, least: int
) -> None:
    comparison = Comparison(ours, load_document(specs, name))

    comparison.compare_paths(BASE)

    assert comparison.lacks == []
    assert comparison.compared >= least
