"""Row filters that ask a mapping table: who is told, who is refused, and what hides the table."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cynosure.auth.caller import MAPPING_FILTERS, POLICY_NAMES, Caller
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import InvalidPolicy, RestrictedByPolicy
from cynosure.catalog.explain import Place, Question, explain
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_credentials import load_credentials
from cynosure.catalog.operations.load_table import load_table, load_table_for_data
from cynosure.catalog.operations.plan_scan import plan_scan
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.planning.request import ScanRequest
from cynosure.testing.small_access import P, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.restrictions.restricting import (
    CATALOG,
    EVERYTHING,
    NAMESPACE,
    TABLE,
    load_restrictions,
    restrict,
    restrictions_in,
)
from tests.catalog.tables import T, change, make
from tests.catalog.world import NS, OTHER, Lake, open_lake

pytestmark = pytest.mark.anyio

MAPPING = Identifier(OTHER, "m")
OWN = "data IN (SELECT m.data FROM other.m WHERE m.data = current_user())"
TEXT = {"type": "reference", "id": 2}


async def make_engine(lake: Lake, caller: Caller, *capabilities: str) -> Caller:
    """A trusted engine that acts for the caller."""
    engine = await lake.people.add("engine")
    await set_trusted_service(lake.people.identities, ROOT, "engine", is_trusted=True)
    return engine_for(engine, caller, *capabilities)


def engine_for(engine: Caller, caller: Caller, *capabilities: str) -> Caller:
    assert caller.identity is not None
    assert engine.identity is not None
    acting = replace(
        caller.identity,
        actor_id=engine.identity.principal_id,
        actor_credential=engine.identity.credential,
    )
    return replace(caller, identity=acting, capabilities=frozenset(capabilities))


async def test_an_engine_that_knows_mappings_is_told_what_to_look_up(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await make(lake.catalog, MAPPING)
        gateway = await make_engine(lake, ann, MAPPING_FILTERS, POLICY_NAMES)
        await restrict(lake, "own", filter=f"id = 7 OR {OWN}")
        await restrict(lake, "mask", CATALOG, columns={"data": "show-last-4"})
        await restrict(lake, "elsewhere", CATALOG, columns={"ssn": "show-last-4"})

        loaded = await load_table_for_data(lake.catalog, gateway, T)
        planned = await plan_scan(lake.catalog, gateway, T, ScanRequest())

        found = restrictions_in(loaded.answer)
        assert found is not None
        assert found["required-row-filter"]["right"] == {"type": "in-mapping", "term": TEXT, "mapping": 0}
        (mapping,) = found["cynosure-mappings"]
        assert mapping["filter"]["right"] == "ann", "of whom it acts for"
        assert (mapping["namespace"], mapping["name"], mapping["column"]) == (["other"], "m", "data")
        assert mapping["policy"] == "ns.own"
        assert found["cynosure-policies"] == ["ns.own", "ns.mask"]
        assert planned.tasks is not None
        assert msgspec.json.decode(planned.tasks.restrictions or b"{}") == found


async def test_nobody_else_gets_anything_of_the_table(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await make(lake.catalog, MAPPING)
        engine = await make_engine(lake, ann, POLICY_NAMES)
        claims = replace(ann, capabilities=frozenset({MAPPING_FILTERS, POLICY_NAMES}))
        await restrict(lake, "own", filter=OWN)

        for caller in (ann, claims, engine):
            for answer in (
                load_table(lake.catalog, caller, T),
                load_table_for_data(lake.catalog, caller, T),
                load_credentials(lake.catalog, caller, T),
                plan_scan(lake.catalog, caller, T, ScanRequest()),
            ):
                with pytest.raises(RestrictedByPolicy) as refused:
                    await answer
                assert "Read it through the SQL gateway: policy ns.own" in refused.value.decision.reason


async def test_names_of_policies_are_for_those_who_ask_and_change_the_etag(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        engine = await make_engine(lake, ann)
        await restrict(lake, "few", filter="id = 7")

        plain = await load_table(lake.catalog, engine, T)
        named = await load_table(lake.catalog, replace(engine, capabilities=frozenset({POLICY_NAMES})), T)
        claimed = await load_table(lake.catalog, replace(ann, capabilities=frozenset({POLICY_NAMES})), T)

        assert restrictions_in(plain) == restrictions_in(claimed)
        assert restrictions_in(named) == {**(restrictions_in(plain) or {}), "cynosure-policies": ["ns.few"]}
        assert plain.etag == claimed.etag != named.etag


async def test_who_needs_no_mapping_reads_as_ever(tmp_path: Path) -> None:
    """A filter that is settled by who reads asks no mapping table any more."""
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await make(lake.catalog, MAPPING)
        await restrict(lake, "own", filter=f"current_user() = 'ann' OR {OWN}")
        bob = await lake.people.add("bob", lake.catalog, *EVERYTHING)

        assert await load_restrictions(lake, ann) is None
        with pytest.raises(RestrictedByPolicy):
            await load_restrictions(lake, bob)
        await restrict(lake, "none", filter="data IN (SELECT data FROM other.m WHERE current_user() = 'x')")
        assert await load_restrictions(lake, ann) == {"required-row-filter": False}


UNFIT: dict[str, tuple[str, str]] = {
    "no such table": ("data IN (SELECT data FROM other.nothing)", "mapping table is not there"),
    "no such column of it": ("data IN (SELECT region FROM other.m)", "region"),
    "nor one that is asked": ("data IN (SELECT data FROM other.m WHERE user = 'x')", "user"),
    "another type": ("data IN (SELECT id FROM other.m)", "differ in type"),
    "no such column": ("region IN (SELECT data FROM other.m)", "region"),
    "a constant of another type": ("data IN (SELECT data FROM other.m WHERE id = 'x')", "id"),
}


@pytest.mark.parametrize(("text", "why"), UNFIT.values(), ids=UNFIT)
async def test_what_does_not_fit_is_not_attached_to_a_table(text: str, why: str, tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await make(lake.catalog, MAPPING)
        path = await restrict(lake, "own", None, filter=text)

        with pytest.raises(InvalidPolicy) as refused:
            await attach_policy(lake.catalog, ROOT, path, TABLE)

        assert refused.value.field == "content.filter"
        assert why in str(refused.value)


async def test_attached_above_it_hides_the_tables_that_it_does_not_fit(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await make(lake.catalog, MAPPING)
        gateway = await make_engine(lake, ann, MAPPING_FILTERS)
        await restrict(lake, "own", NAMESPACE, filter="data IN (SELECT id FROM other.m)")

        with pytest.raises(RestrictedByPolicy) as refused:
            await load_table(lake.catalog, gateway, T)

        assert "ns.own" in str(refused.value)
        assert "differ in type" in refused.value.decision.reason


@pytest.mark.parametrize("to", [TABLE, NAMESPACE], ids=["on the table", "above it"])
async def test_without_its_mapping_table_nothing_is_shown(to: Any, tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await make(lake.catalog, MAPPING)
        gateway = await make_engine(lake, ann, MAPPING_FILTERS)
        path = await restrict(lake, "own", to, filter=OWN)
        assert await load_restrictions(lake, gateway) is not None

        aside = Identifier(OTHER, "aside")
        await rename_table(lake.catalog, ROOT, MAPPING, aside)
        assert "other.m is not there" in await find_reason(lake, gateway)
        await rename_table(lake.catalog, ROOT, aside, MAPPING)
        assert await load_restrictions(lake, gateway) is not None, "it is the same table"

        await drop_table(lake.catalog, ROOT, MAPPING)
        assert "other.m is not there" in await find_reason(lake, gateway)
        await make(lake.catalog, MAPPING)
        assert "is not the one it was attached with" in await find_reason(lake, gateway)

        await attach_policy(lake.catalog, ROOT, path, to)
        assert await load_restrictions(lake, gateway) is not None


async def test_a_change_of_the_mapping_tables_columns_counts_at_once(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)
        made = await make(lake.catalog, MAPPING)
        gateway = await make_engine(lake, ann, MAPPING_FILTERS)
        await restrict(lake, "own", filter=OWN)
        assert await load_restrictions(lake, gateway) is not None

        schema = msgspec.json.decode(made.metadata)["schemas"][0]
        schema["fields"][1]["name"] = "other"
        await change(
            lake.catalog,
            {"action": "add-schema", "schema": schema},
            {"action": "set-current-schema", "schema-id": -1},
            table=MAPPING,
        )

        assert "data" in await find_reason(lake, gateway)


async def test_who_manages_access_elsewhere_has_no_filter_ask_a_table(tmp_path: Path) -> None:
    """The gateway reads it for them: which rows of a table of their own they see tells what is in it."""
    async with open_lake(tmp_path) as lake:
        await make(lake.catalog, MAPPING)
        ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.CATALOG_MANAGE_ACCESS))
        path, kind = Identifier(NS, "own"), "cynosure.row-filter"
        plain, asking = (f'{{"enable": true, "filter": "{each}"}}' for each in ("id = 7", OWN))

        with pytest.raises(AccessDenied) as refused:
            await create_policy(lake.catalog, ann, CreatePolicy(path, kind, asking))
        assert [each.target for each in refused.value.decision.missing] == ["other.m"]
        await create_policy(lake.catalog, ann, CreatePolicy(path, kind, plain))
        with pytest.raises(AccessDenied):
            await update_policy(lake.catalog, ann, path, PolicyUpdate(asking))

        await lake.people.grant("ann", lake.catalog, *on_table(MAPPING, P.CATALOG_MANAGE_ACCESS))
        await update_policy(lake.catalog, ann, path, PolicyUpdate(asking))
        await lake.people.revoke("ann", lake.catalog, *on_table(MAPPING, P.CATALOG_MANAGE_ACCESS))
        await update_policy(lake.catalog, ann, path, PolicyUpdate(asking, description="as it was"))


async def find_reason(lake: Lake, caller: Caller) -> str:
    with pytest.raises(RestrictedByPolicy) as refused:
        await load_table(lake.catalog, caller, T)
    assert "ns.own" in str(refused.value)
    return refused.value.decision.reason


async def test_explaining_names_the_mapping_and_no_constant(tmp_path: Path) -> None:
    async with open_lake(tmp_path) as lake:
        await lake.people.add("ann", lake.catalog, *EVERYTHING)
        await make(lake.catalog, MAPPING)
        await restrict(lake, "own", filter=f"id = 4711 OR {OWN}")
        target = Place(catalog=lake.catalog.entity.name, namespace=T.namespace, table=T.name)

        for operation in ("load-table", "plan-scan", "load-table-to-read"):
            question = Question(operation=operation, target=target, principal="ann")
            found = await explain(lake.directory, lake.people.identities, ROOT, question)

            assert not found.is_allowed
            assert "SQL gateway" in found.reason
            (note,) = found.restrictions
            assert note.effect == (
                "only rows where (id = (int) or data in (select data from other.m where data = (string)))"
            )
