"""The page about our own part of the catalog API names every route, and no others."""

import re
from pathlib import Path

import pytest

from tests.api.world import World, open_world

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs/reference/catalog-api.md"
OURS = "/api/catalog/cynosure/v1/{prefix}/"
TABLE = "namespaces/{namespace}/tables/{table}"


@pytest.fixture
async def world(tmp_path: Path):
    async with open_world(tmp_path) as world:
        yield world


async def test_every_route_of_ours_is_on_the_page(world: World) -> None:
    rows = re.findall(r"^\| `([A-Z]+) ([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    written = {(method, re.sub(r"^\{table\}", TABLE, path)) for method, path in rows}

    served = {
        (route.method, route.path.removeprefix(OURS))
        for route in world.service.routes
        if route.path.startswith(OURS.removesuffix("{prefix}/"))
    }

    assert written == served
