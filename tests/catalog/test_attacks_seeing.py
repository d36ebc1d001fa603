"""What somebody who sees one table could learn about what is beside it: nothing."""

from pathlib import Path

import msgspec
import pytest

from cynosure.auth.settings import AuthSettings
from cynosure.catalog.errors import NoSuchNamespace
from cynosure.catalog.listing import Paging
from cynosure.catalog.operations.list_namespaces import list_namespaces
from cynosure.catalog.operations.load_namespace import load_namespace
from cynosure.testing.small_access import P, on_namespace, on_table
from tests.catalog.tables import T
from tests.catalog.world import DEEP, NS, open_lake

pytestmark = pytest.mark.anyio
VEILED = AuthSettings(filter_lists=True, hide_existence=True)


async def test_a_table_does_not_show_the_namespaces_beside_it(tmp_path: Path) -> None:
    async with open_lake(tmp_path, VEILED) as lake:
        ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))

        top = msgspec.json.decode(await list_namespaces(lake.catalog, ann, (), Paging()))
        below = msgspec.json.decode(await list_namespaces(lake.catalog, ann, NS, Paging()))
        with pytest.raises(NoSuchNamespace):
            await load_namespace(lake.catalog, ann, DEEP)

        assert top["namespaces"] == [["ns"]]
        assert below["namespaces"] == []


async def test_a_right_on_a_namespace_shows_those_below_it(tmp_path: Path) -> None:
    async with open_lake(tmp_path, VEILED) as lake:
        ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_READ_PROPERTIES))

        below = msgspec.json.decode(await list_namespaces(lake.catalog, ann, NS, Paging()))

        assert below["namespaces"] == [list(DEEP)]
