"""What no remote is asked for is refused on a federated catalog, whoever asks."""

import pytest

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.cascading.drop_namespace import drop_namespace_cascade
from cynosure.catalog.errors import OwnedElsewhere
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, T
from tests.federation.writes.changes import Passing, make_namespace, make_table

pytestmark = pytest.mark.anyio

NEVER = (
    ops.APPEND_FILES,
    ops.ADD_COLUMNS,
    ops.SET_PARTITIONING,
    ops.SET_SORT_ORDER,
    ops.EXPORT_TABLE,
    ops.ORDER_MAINTENANCE,
)
ONLY_THERE = (ops.COMMIT_TABLE, ops.RENAME_TABLE, ops.UNREGISTER_TABLE)


@pytest.mark.parametrize("operation", NEVER, ids=lambda each: each.name)
async def test_it_is_refused_by_both_ways(here: Passing, operation: Operation) -> None:
    await make_table(here)
    catalog, view = here.far.catalog, await here.far.catalog.read()
    for way in (catalog, catalog.passing_on()):
        with pytest.raises(OwnedElsewhere):
            await way.authorize(view, ROOT, operation, catalog.table(T))


@pytest.mark.parametrize("operation", ONLY_THERE, ids=lambda each: each.name)
async def test_it_goes_only_by_the_remote(here: Passing, operation: Operation) -> None:
    await make_table(here)
    catalog, view = here.far.catalog, await here.far.catalog.read()
    with pytest.raises(OwnedElsewhere):
        await catalog.authorize(view, ROOT, operation, catalog.table(T))
    await catalog.passing_on().authorize(view, ROOT, operation, catalog.table(T))


async def test_generic_tables_and_undrop_are_for_our_own_catalogs(here: Passing) -> None:
    await make_namespace(here)
    catalog, view = here.far.catalog, await here.far.catalog.read()
    for way in (catalog, catalog.passing_on()):
        with pytest.raises(OwnedElsewhere):
            await way.authorize(view, ROOT, ops.CREATE_GENERIC_TABLE, catalog.namespace(NS))
        with pytest.raises(OwnedElsewhere):
            await way.authorize(view, ROOT, ops.RESTORE_DROPPED, catalog.target())


async def test_a_namespace_is_not_dropped_here_alone_with_all_it_holds(here: Passing) -> None:
    await make_table(here)

    with pytest.raises(OwnedElsewhere):
        await drop_namespace_cascade(here.far.catalog, ROOT, NS)
    assert T in here.remote.tables
