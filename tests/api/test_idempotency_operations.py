"""The page that says how each operation is repeated names all of them, and no others."""

import re
from pathlib import Path

import pytest

from tests.api.world import World, open_world

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs/reference/idempotency-operations.md"
REFERENCES = {"`main`", "`reports`", "`catalogs`", "`principals`", "`grants`", "none"}


@pytest.fixture
async def world(tmp_path: Path):
    async with open_world(tmp_path) as world:
        yield world


def read_rows() -> dict[str, list[str]]:
    """The cells after the first one, by operation; of several rows of one operation the first."""
    rows: dict[str, list[str]] = {}
    for line in PAGE.read_text().splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if line.startswith("|") and re.match(r"[a-z]+[A-Z]\w+", cells[0]):
            rows.setdefault(cells[0].partition(",")[0], cells[1:])
    return rows


async def test_every_operation_that_takes_a_key_is_on_the_page(world: World) -> None:
    keyed = {route.operation_id for route in world.service.routes if route.is_keyed}

    assert {name for name, cells in read_rows().items() if cells[0] in REFERENCES} == keyed


async def test_every_other_post_is_on_the_page_as_one_that_takes_none(world: World) -> None:
    mutating = {"POST", "PUT", "DELETE"}
    routes = [route for route in world.service.routes if route.method in mutating and not route.is_keyed]

    assert {name for name, cells in read_rows().items() if cells[0] not in REFERENCES} == {
        route.operation_id for route in routes
    }
