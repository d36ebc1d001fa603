"""An explanation tells the decision, the grants behind it, what is missing, and what would help."""

import msgspec
import pytest

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.access.explain import (
    Explanation,
    Need,
    Remedy,
    explain_access,
    find_remedies,
    get_operation,
    load_subject,
)
from cynosure.auth.entities import ROOT
from cynosure.auth.ports import Missing, Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import THE_CATALOG
from cynosure.auth.rbac.operations import OPERATIONS, Operation
from cynosure.auth.rbac.privileges import Privilege as P
from cynosure.auth.standing import Standings
from cynosure.auth.targets import PrincipalTarget, RealmTarget
from cynosure.common.errors import BadInput, NotAuthenticated
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.testing.access_world import AccessWorld, World
from cynosure.testing.authorizer_kit import INNER, OUTER, TABLE, PlacedTarget, reader_of

pytestmark = pytest.mark.anyio
PLACES = {"outer": OUTER, "outer.inner": INNER, "outer.inner.table": TABLE}


def table_in(world: AccessWorld) -> PlacedTarget:
    return PlacedTarget("table", world.catalog, ("outer", OUTER), ("inner", INNER), ("table", TABLE))


def namespace_in(world: AccessWorld) -> PlacedTarget:
    return PlacedTarget("namespace", world.catalog, ("outer", OUTER))


async def explain(world: AccessWorld, name: str, operation: Operation, *targets: Target) -> Explanation:
    standings = Standings(world.persistence)
    authorizer = InternalAuthorizer(world.persistence, standings)
    subject = await load_subject(standings, world.realm, world.id_of("principal", name))
    return await explain_access(authorizer, subject, operation, targets, await world.view(), catalog="sales")


async def test_what_is_allowed_is_told_with_the_grant_that_allows_it(world: AccessWorld):
    await world.make(reader_of(OUTER, P.TABLE_WRITE_DATA))

    told = await explain(world, "ann", ops.LOAD_TABLE, table_in(world))

    assert told.is_allowed
    assert (told.principal, told.roles, told.operation) == ("ann", ("reader",), "load-table")
    assert told.needs == (Need("table", "outer.inner.table", ("TABLE_READ_PROPERTIES",)),)
    (step,) = told.path
    assert (step.needed, step.held) == ("TABLE_READ_PROPERTIES", "TABLE_WRITE_DATA")
    assert (step.on_kind, step.on) == ("namespace", "outer")
    assert (told.missing, told.remedies, told.reason) == ((), (), "")


async def test_a_grant_on_the_catalog_is_told_by_the_catalogs_name(world: AccessWorld):
    await world.make(reader_of(THE_CATALOG, P.TABLE_READ_DATA))

    told = await explain(world, "ann", ops.LOAD_TABLE, table_in(world))

    assert [(step.on_kind, step.on) for step in told.path] == [("catalog", "sales")]


async def test_what_is_refused_is_told_with_what_is_missing_and_what_would_help(world: AccessWorld):
    await world.make(reader_of(TABLE, P.TABLE_DROP))

    told = await explain(world, "ann", ops.PURGE_TABLE, table_in(world))

    assert not told.is_allowed
    assert [step.needed for step in told.path] == ["TABLE_DROP"]
    assert told.missing == (Missing("TABLE_WRITE_DATA", "table", "outer.inner.table"),)
    assert told.remedies == (
        Remedy("TABLE_WRITE_DATA", ("TABLE_WRITE_DATA",), "table", "outer.inner.table"),
        Remedy(
            "TABLE_WRITE_DATA", ("TABLE_WRITE_DATA", "CATALOG_MANAGE_CONTENT"), "namespace", "outer.inner"
        ),
        Remedy("TABLE_WRITE_DATA", ("TABLE_WRITE_DATA", "CATALOG_MANAGE_CONTENT"), "namespace", "outer"),
        Remedy("TABLE_WRITE_DATA", ("TABLE_WRITE_DATA", "CATALOG_MANAGE_CONTENT"), "catalog", "sales"),
    )


async def test_every_remedy_meets_what_it_is_for_and_whatever_is_missing_has_one(world: AccessWorld):
    nothing = World({"ann": ("reader",)}, uses={"reader": ("role",)})
    known: dict[str, Target] = {
        "table": table_in(world),
        "namespace": namespace_in(world),
        "catalog": PlacedTarget("catalog", world.catalog),
    }
    for operation in OPERATIONS.values():
        if operation == ops.DROP_CATALOG or not {*operation.kinds} <= known.keys():
            continue  # Nothing that can be granted allows these.
        targets = tuple(known[kind] for kind in operation.kinds)
        await world.make(nothing)
        refused = await explain(world, "ann", operation, *targets)
        remedies = [each for each in refused.remedies if each.on_kind != "realm"]

        assert {each.missing for each in remedies} == {each.privilege for each in refused.missing}
        for remedy in remedies:
            place = THE_CATALOG if remedy.on_kind == "catalog" else PLACES[remedy.on]
            # The smallest and the largest; the tests of privileges have all in between.
            for privilege in {remedy.privileges[0], remedy.privileges[-1]}:
                grants = {("role", place): (P[privilege],)}
                await world.make(msgspec.structs.replace(nothing, grants=grants))
                told = await explain(world, "ann", operation, *targets)
                assert remedy.missing in {step.needed for step in told.path}, (operation.name, remedy)


async def test_what_only_built_in_roles_hold_is_told_as_that(world: AccessWorld):
    await world.make(World({"ann": ()}))

    told = await explain(world, "ann", ops.CREATE_PRINCIPAL, RealmTarget("default"))

    assert told.remedies == (Remedy("PRINCIPAL_CREATE", ("SERVICE_MANAGE_ACCESS",), "realm", ""),)


async def test_a_rule_is_told_as_the_reason(world: AccessWorld):
    await world.make(World({"ann": ("admin",), ROOT: ()}, realm={"admin": (P.SERVICE_MANAGE_ACCESS,)}))

    told = await explain(world, "ann", ops.RESET_CREDENTIALS, PrincipalTarget(ROOT))

    assert not told.is_allowed
    assert "only the principal root" in told.reason
    assert (told.missing, told.remedies) == ((), ())


async def test_several_targets_are_each_told_their_needs(world: AccessWorld):
    await world.make(World({"ann": ()}))
    other = PlacedTarget("table", world.catalog, ("outer", OUTER), ("other", ObjId(9)))

    told = await explain(world, "ann", ops.COMMIT_TRANSACTION, table_in(world), other)

    assert [each.target for each in told.needs] == ["outer.inner.table", "outer.other"]
    assert len(told.missing) == 4


async def test_a_principal_is_explained_with_all_its_roles_and_those_of_other_issuers(world: AccessWorld):
    await world.make(World({"ann": ("b", "a")}, federated=("group",)))
    standings, ann = Standings(world.persistence), world.id_of("principal", "ann")

    alone = await load_subject(standings, world.realm, ann)
    with_group = await load_subject(standings, world.realm, ann, ("group", "a", "unknown"))

    assert alone.roles == ("a", "b")
    assert with_group.roles == ("a", "b", "group")
    assert not alone.is_operator


async def test_a_principal_that_is_gone_is_not_explained(world: AccessWorld):
    await world.make(World())

    with pytest.raises(NotAuthenticated):
        await load_subject(Standings(world.persistence), world.realm, ObjId(5))


def test_an_operation_is_found_by_its_name_and_an_unknown_one_is_refused():
    assert get_operation("load-table") is ops.LOAD_TABLE
    with pytest.raises(BadInput, match="load-table"):
        get_operation("load_table")


def test_the_root_of_a_catalog_is_helped_by_grants_on_the_catalog_only():
    root = PlacedTarget("namespace", CatalogId("77"))

    remedies = list(find_remedies(P.NAMESPACE_LIST, root, "sales"))

    assert {each.on_kind for each in remedies} == {"catalog"}
