"""What somebody with a few rights on content could try to gain more: each attempt fails."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Decision, Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.errors import LocationRefused, TableExists
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import RequirementFailed
from cynosure.persistence.commit import View
from cynosure.persistence.spi import ObjId, RefKey
from cynosure.testing.small_access import P, on_namespace
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, decoded, make, properties, requirements, updates
from tests.catalog.world import NS, OTHER, Lake, open_lake

pytestmark = pytest.mark.anyio

MINE = Identifier(OTHER, "mine")


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


async def make_with_log(catalog: OpenCatalog, log: list[str]) -> str:
    """A metadata file that somebody wrote by hand: its log names files that are not the table's."""
    made = await make(catalog, MINE, properties={"write.metadata.previous-versions-max": "1"})
    metadata = decoded(made)
    metadata["properties"]["write.metadata.delete-after-commit.enabled"] = "true"
    metadata["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": each} for each in log]
    forged = path_of(made.metadata_location).with_name("forged.metadata.json")
    forged.write_text(json.dumps(metadata))
    return f"file://{forged}"


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        yield opened


async def test_a_forged_metadata_log_deletes_no_file_of_others(lake: Lake) -> None:
    """With the rights on a table of one's own, the server would delete any file that its storage reaches."""
    stray = path_of(lake.catalog.base.text) / "lost" / "data.parquet"
    stray.parent.mkdir()
    stray.write_bytes(b"data")
    mallory = await lake.people.add(
        "mallory", lake.catalog, *on_namespace(OTHER, P.TABLE_FULL_METADATA, P.TABLE_WRITE_DATA)
    )
    forged = await make_with_log(lake.catalog, [f"file://{stray}"])

    await register_table(lake.catalog, mallory, MINE, forged, is_overwrite=True)
    for number in range(3):
        wanted = TableChange(MINE, [], updates(properties(k=str(number))))
        await commit_table(lake.catalog, mallory, wanted)
    await lake.catalog.shared.background.close()

    assert stray.exists()


@pytest.mark.parametrize("log", ["victim", "file:///other-catalog/x", "../../etc/passwd", "no-scheme:\x00"])
async def test_a_metadata_log_that_names_files_of_others_is_not_registered(lake: Lake, log: str) -> None:
    victim = (await load_table(lake.catalog, ROOT, T)).metadata_location
    forged = await make_with_log(lake.catalog, [victim if log == "victim" else log])
    before = await lake.heads()

    with pytest.raises((LocationRefused, BadInput)):
        await register_table(lake.catalog, ROOT, MINE, forged, is_overwrite=True)

    assert await lake.heads() == before


async def test_who_may_create_tables_learns_nothing_of_those_that_exist(lake: Lake) -> None:
    """The text of a requirement that is not met quotes the table; only who may read it may be told."""
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_CREATE))
    secret = decoded(await load_table(lake.catalog, ROOT, T))["table-uuid"]
    probing = requirements({"type": "assert-table-uuid", "uuid": "0"}, {"type": "assert-create"})

    with pytest.raises(RequirementFailed) as refused:
        await commit_table(lake.catalog, ann, TableChange(T, probing, []))

    assert secret not in str(refused.value)
    assert "table already exists" in str(refused.value)


class OnlyRegisters:
    """An authorizer of somebody else's making, in which creating does not include listing."""

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        return Decision(operation.name == "register-table")


async def test_the_right_to_register_never_overwrites(lake: Lake) -> None:
    """Where existence is hidden, a table that the caller may not know of is still not theirs to replace."""
    forged = await make_with_log(lake.catalog, [])
    await unregister_table(lake.catalog, ROOT, MINE)
    before = (await load_table(lake.catalog, ROOT, T)).etag
    real = lake.catalog
    shared = replace(real.shared, authorizer=OnlyRegisters(), access=AuthSettings(hide_existence=True))
    hiding = OpenCatalog(real.realm, real.entity, shared, real.storage)

    with pytest.raises(TableExists):
        await register_table(hiding, Caller("mallory"), T, forged, is_overwrite=True)

    assert (await load_table(lake.catalog, ROOT, T)).etag == before


class LosesOverwriting(OnlyRegisters):
    """Takes the right to overwrite away when it has been relied on: the head that it rests on has moved."""

    def __init__(self, rests_on: RefKey) -> None:
        self.rests_on = rests_on
        self.asked = 0

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        if operation.name != "overwrite-table":
            return await super().decide(caller, operation, targets, view)
        self.asked += 1
        # For the first look and for the preparation; not again when it is committed.
        return Decision(self.asked <= 2, guards={self.rests_on: ObjId(1)})


async def test_the_right_to_register_does_not_stand_in_for_a_lost_one_to_overwrite(lake: Lake) -> None:
    forged = await make_with_log(lake.catalog, [])
    await unregister_table(lake.catalog, ROOT, MINE)
    before = (await load_table(lake.catalog, ROOT, T)).etag
    real = lake.catalog
    authorizer = LosesOverwriting(real.grants.key)
    shared = replace(real.shared, authorizer=authorizer, access=AuthSettings(hide_existence=True))

    with pytest.raises(TableExists):
        await register_table(
            OpenCatalog(real.realm, real.entity, shared, real.storage),
            Caller("mallory"),
            T,
            forged,
            is_overwrite=True,
        )

    assert authorizer.asked > 2
    assert (await load_table(lake.catalog, ROOT, T)).etag == before
