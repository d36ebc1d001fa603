"""A restriction counts from the moment it is attached, also for a commit that is under way (I54)."""

from pathlib import Path

import pytest

from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.restrictions.restricting import EVERYTHING, NAMESPACE, TABLE, add_role, restrict
from tests.catalog.tables import T, decoded
from tests.catalog.test_access_in_flight import CHANGE, in_flight
from tests.catalog.world import open_lake

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("to", [TABLE, NAMESPACE], ids=lambda to: to.type)
async def test_a_commit_in_flight_is_refused_once_its_principal_is_restricted(
    to, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        path = await restrict(lake, "few", None, filter="id = 7")

        with pytest.raises(RestrictedByPolicy):
            await in_flight(
                monkeypatch,
                lambda: commit_table(lake.catalog, ann, CHANGE),
                lambda: attach_policy(lake.catalog, ROOT, path, to),
            )

        assert "k" not in decoded(await load_table(lake.catalog, ROOT, T))["properties"]


async def test_a_commit_in_flight_is_refused_once_its_principal_gets_a_restricted_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await add_role(lake, "analyst")
        await restrict(lake, "few", filter="id = 7", roles=["analyst"])

        with pytest.raises(RestrictedByPolicy):
            await in_flight(
                monkeypatch,
                lambda: commit_table(lake.catalog, ann, CHANGE),
                lambda: assign_principal_role(lake.people.identities, ROOT, "ann", "analyst"),
            )

        assert "k" not in decoded(await load_table(lake.catalog, ROOT, T))["properties"]
