"""Who may not see all of a table is told what to apply, in every answer (I51)."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.catalog.errors import RestrictedByPolicy
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.load_table import load_table, load_table_for_data
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.testing.small_catalog import ROOT
from tests.catalog.restrictions.restricting import (
    CATALOG,
    EVERYTHING,
    NAMESPACE,
    TABLE,
    acting_as,
    add_role,
    load_restrictions,
    restrict,
    restrictions_in,
)
from tests.catalog.tables import T, change, decoded, make, snapshot
from tests.catalog.world import OTHER, open_lake

pytestmark = pytest.mark.anyio

LONG = {"type": "reference", "id": 1}
TEXT = {"type": "reference", "id": 2}


def literal(value: Any, type_: str) -> dict[str, Any]:
    return {"type": "literal", "value": value, "data-type": type_}


async def test_the_filters_of_the_whole_path_apply_together_and_masks_beside_them(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        assert await load_restrictions(lake, ann) is None

        await restrict(lake, "on-catalog", CATALOG, filter="data = current_user()")
        await restrict(lake, "on-table", TABLE, filter="id = 7")
        await restrict(lake, "mask", NAMESPACE, columns={"DATA": "show-last-4"})
        await restrict(lake, "stricter", TABLE, columns={"data": "sha-256-query-local"})

        assert await load_restrictions(lake, ann) == {
            "required-row-filter": {
                "type": "and",
                "left": {"type": "eq", "left": TEXT, "right": literal("ann", "string")},
                "right": {"type": "eq", "left": LONG, "right": literal(7, "long")},
            },
            "required-column-projections": [{"field-id": 2, "action": "sha-256-query-local"}],
        }


async def test_an_expression_of_the_protocol_is_a_filter_as_well(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "few", filter={"type": "not-eq", "term": "data", "value": "x"})

        found = await load_restrictions(lake, ann)

        assert found is not None
        assert found["required-row-filter"]["left"] == {"type": "not-null", "child": TEXT}


async def test_root_is_restricted_and_the_operator_of_the_machine_is_not(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        root = await lake.people.root()
        await restrict(lake, "few", filter="id = 7")

        assert await load_restrictions(lake, root) is not None
        assert await load_restrictions(lake, ROOT) is None


async def test_what_is_detached_or_switched_off_restricts_nobody(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        path = await restrict(lake, "few", filter="id = 7")
        assert await load_restrictions(lake, ann) is not None

        off = '{"enable":false,"filter":"id = 7"}'
        await update_policy(lake.catalog, ROOT, path, PolicyUpdate(off))
        assert await load_restrictions(lake, ann) is None

        await update_policy(lake.catalog, ROOT, path, PolicyUpdate(off.replace("false", "true")))
        assert await load_restrictions(lake, ann) is not None
        await detach_policy(lake.catalog, ROOT, path, TABLE)
        assert await load_restrictions(lake, ann) is None


async def test_a_restriction_for_roles_is_for_those_who_have_one_also_when_they_act_without(
    tmp_path: Path,
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        bob = await lake.people.add("bob", lake.catalog, *EVERYTHING)
        await add_role(lake, "analyst", "ann")
        await restrict(lake, "few", filter="id = 7", roles=["analyst"])

        assert await load_restrictions(lake, ann) is not None
        assert await load_restrictions(lake, acting_as(ann, "ann")) is not None
        assert await load_restrictions(lake, bob) is None


async def test_an_exemption_counts_only_for_who_acts_with_the_role(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await add_role(lake, "auditor", "ann")
        await restrict(lake, "few", filter="id = 7", except_roles=["auditor"])

        assert await load_restrictions(lake, ann) is None
        assert await load_restrictions(lake, acting_as(ann, "ann")) is not None


async def test_asking_for_a_role_in_a_filter_never_shows_more_to_who_gives_it_up(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await add_role(lake, "analyst", "ann")
        await restrict(lake, "few", filter="NOT is_member('analyst') OR id = 7")

        assert await load_restrictions(lake, ann) is not None
        assert await load_restrictions(lake, acting_as(ann, "ann")) is not None


async def test_deleting_a_role_does_not_lift_what_it_restricted(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await add_role(lake, "analyst", "ann")
        await restrict(lake, "few", filter="id = 7", roles=["analyst"])

        await delete_principal_role(lake.people.identities, ROOT, "analyst")

        assert await load_restrictions(lake, ann) is not None


async def test_a_mask_on_a_namespace_is_nothing_to_tables_without_the_column(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "mask", CATALOG, columns={"ssn": "show-last-4"})

        assert await load_restrictions(lake, ann) is None
        assert (await load_table_for_data(lake.catalog, ann, T)).is_writable


async def test_a_filter_that_does_not_fit_a_table_hides_it_and_says_why(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "few", CATALOG, filter="region = 'EU'")

        for load in (load_table, load_table_for_data):
            with pytest.raises(RestrictedByPolicy) as refused:
                await load(lake.catalog, ann, T)
            assert "ns.few" in str(refused.value)
            assert "region" in str(refused.value)


async def test_an_action_that_does_not_fit_a_column_below_becomes_one_that_shows_nothing(
    tmp_path: Path,
) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await restrict(lake, "mask", NAMESPACE, columns={"id": "show-last-4"})

        found = await load_restrictions(lake, ann)

        assert found == {"required-column-projections": [{"field-id": 1, "action": "mask-to-fixed-value"}]}


async def test_an_answer_with_restrictions_tells_nothing_about_hidden_rows(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        added, main = snapshot(1, at=await load_table(lake.catalog, ROOT, T))
        added["snapshot"]["summary"] |= {"added-records": "42", "partitions.region=EU": "added-records=42"}
        statistics = {
            "snapshot-id": 1,
            "statistics-path": added["snapshot"]["manifest-list"] + ".puffin",
            "file-size-in-bytes": 42,
            "file-footer-size-in-bytes": 42,
            "blob-metadata": [],
        }
        await change(lake.catalog, added, main, {"action": "set-statistics", "statistics": statistics})
        await restrict(lake, "few", filter="id = 7")

        for snapshots in ("all", "refs"):
            metadata = decoded(await load_table(lake.catalog, ann, T, snapshots=snapshots))

            (shown,) = metadata["snapshots"]
            assert shown == {**added["snapshot"], "summary": {"operation": "append"}}
            assert metadata["statistics"] == []


async def test_answers_with_other_restrictions_have_other_etags(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        bob = await lake.people.add("bob", lake.catalog, *EVERYTHING)
        open_etag = (await load_table(lake.catalog, ann, T)).etag
        await restrict(lake, "own", filter="data = current_user()")

        answers = [await load_table(lake.catalog, who, T) for who in (ann, bob, ann)]
        refs = await load_table(lake.catalog, ann, T, snapshots="refs")

        assert answers[0] is answers[2], "kept"
        assert len({open_etag, answers[0].etag, answers[1].etag, refs.etag}) == 4


async def test_a_trusted_engine_gets_restrictions_and_files_to_read(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        engine = await lake.people.add("engine")
        await set_trusted_service(lake.people.identities, ROOT, "engine", is_trusted=True)
        assert ann.identity is not None
        assert engine.identity is not None
        acting = replace(
            ann,
            identity=replace(
                ann.identity,
                actor_id=engine.identity.principal_id,
                actor_credential=engine.identity.credential,
            ),
        )
        await restrict(lake, "few", filter="data = current_user()")
        loaded = await load_table_for_data(lake.catalog, acting, T)

        found = restrictions_in(loaded.answer)
        assert found is not None
        assert found["required-row-filter"]["right"]["value"] == "ann", "of whom it acts for"
        assert not loaded.is_writable


async def test_a_table_without_restrictions_is_answered_as_ever(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        other = Identifier(OTHER, "t")
        await make(lake.catalog, other)
        await restrict(lake, "few", NAMESPACE, filter="id = 7")

        assert await load_restrictions(lake, ann, other) is None
        assert (await load_table_for_data(lake.catalog, ann, other)).is_writable
