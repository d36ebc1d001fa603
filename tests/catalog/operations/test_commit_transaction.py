"""Several tables in one commit, all or none (I26)."""

import pytest

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import RequirementFailed
from cynosure.testing.small_catalog import ROOT
from tests.catalog.operations.test_create_table import creation
from tests.catalog.tables import T, change, decoded, make, properties, requirements, updates

pytestmark = pytest.mark.anyio

A, B = Identifier(("ns",), "a"), Identifier(("ns",), "b")


def setting(table: Identifier, **values: str) -> TableChange:
    return TableChange(table, [], updates(properties(**values)))


async def test_all_tables_change_in_one_commit(catalog: OpenCatalog):
    await make(catalog, A)
    await make(catalog, B)
    before = (await catalog.read()).commit.record.sequence

    await commit_transaction(catalog, ROOT, [setting(A, k="1"), setting(B, k="2")])

    assert (await catalog.read()).commit.record.sequence == before + 1
    assert decoded(await load_table(catalog, ROOT, A))["properties"]["k"] == "1"
    assert decoded(await load_table(catalog, ROOT, B))["properties"]["k"] == "2"


async def test_one_failed_requirement_leaves_all_tables_as_they_were(catalog: OpenCatalog):
    first, second = await make(catalog, A), await make(catalog, B)
    fails = TableChange(
        B,
        requirements({"type": "assert-current-schema-id", "current-schema-id": 7}),
        updates(properties(k="2")),
    )

    with pytest.raises(RequirementFailed):
        await commit_transaction(catalog, ROOT, [setting(A, k="1"), fails])

    assert (await load_table(catalog, ROOT, A)).etag == first.etag
    assert (await load_table(catalog, ROOT, B)).etag == second.etag
    with pytest.raises(NoSuchTable):
        await commit_transaction(catalog, ROOT, [setting(A, k="1"), setting(T, k="2")])
    assert (await load_table(catalog, ROOT, A)).etag == first.etag


async def test_a_table_can_be_created_inside(catalog: OpenCatalog):
    await make(catalog, A)
    staged = decoded(await make(catalog, T, is_staged=True))
    create = TableChange(T, requirements({"type": "assert-create"}), creation(staged))

    await commit_transaction(catalog, ROOT, [setting(A, k="1"), create])

    assert decoded(await load_table(catalog, ROOT, T))["table-uuid"] == staged["table-uuid"]


async def test_a_later_change_sees_what_earlier_ones_did(catalog: OpenCatalog):
    await make(catalog, A)
    staged = decoded(await make(catalog, T, is_staged=True))
    create = TableChange(T, requirements({"type": "assert-create"}), creation(staged))

    await commit_transaction(
        catalog, ROOT, [create, setting(T, after="yes"), setting(A, k="1"), setting(A, l="2")]
    )

    made = decoded(await load_table(catalog, ROOT, T))
    assert made["properties"]["after"] == "yes"
    assert len(made["metadata-log"]) == 1
    changed = decoded(await load_table(catalog, ROOT, A))
    assert changed["properties"]["k"] == "1"
    assert changed["properties"]["l"] == "2"
    assert decoded(await change(catalog, properties(m="3"), table=A))["properties"]["m"] == "3"


async def test_two_creations_of_one_name_are_refused(catalog: OpenCatalog):
    staged = decoded(await make(catalog, T, is_staged=True))
    create = TableChange(T, requirements({"type": "assert-create"}), creation(staged))
    with pytest.raises(RequirementFailed, match="already exists"):
        await commit_transaction(catalog, ROOT, [create, create])
    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)


async def test_too_many_changes_are_refused(catalog: OpenCatalog):
    await make(catalog, A)
    with pytest.raises(BadInput, match="too many"):
        await commit_transaction(catalog, ROOT, [setting(A, k=str(n)) for n in range(1_001)])


async def test_a_transaction_of_nothing_is_refused(catalog: OpenCatalog):
    with pytest.raises(BadInput):
        await commit_transaction(catalog, ROOT, [])
