"""What every authorizer must do: the promises of `cynosure.auth.ports.Authorizer`, as tests.

A binding is a subclass with one fixture:

    class TestMyAuthorizer(AuthorizerKit):
        @pytest.fixture
        async def stage(self) -> AsyncIterator[Stage]:
            yield MyStage(...)

The stage makes a world so (`access_world.World`: principals, roles, grants) in whatever way the authorizer
learns of such things, and opens handles on it: every one is another server. Privileges mean what
`cynosure.auth.rbac` says they mean.

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio: give it a fixture `anyio_backend` that
returns "asyncio". A maintainer must not break: no test knows how an authorizer stores what it knows.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

import pytest

from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.ports import Authorizer, Decision, Missing, Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.grants import THE_CATALOG
from cynosure.auth.rbac.operations import OPERATIONS, Operation
from cynosure.auth.rbac.privileges import SATISFIED_BY, Privilege, members
from cynosure.auth.rbac.privileges import Privilege as P
from cynosure.auth.targets import CatalogRoleTarget, PrincipalRoleTarget, PrincipalTarget, RealmTarget
from cynosure.common.errors import CynosureError, NotFound
from cynosure.persistence.commit import View
from cynosure.persistence.spi import CatalogId, ObjId, RefKey
from cynosure.testing.access_world import World

OUTER, INNER, TABLE, SIBLING, OTHER_SPACE, VIEW = (ObjId(number) for number in range(1_001, 1_007))
"""`outer.inner.table`, `outer.inner.sibling`, `outer.inner.view`, and the namespace `other`."""


class Stage(Protocol):
    """What a binding supplies."""

    @property
    def catalog(self) -> CatalogId:
        """The catalog that grants are in."""
        ...

    async def make(self, world: World) -> None:
        """Make it so: whatever else there was is gone."""
        ...

    def open_handle(self) -> Authorizer:
        """An authorizer as another server has one."""
        ...

    def caller(self, principal: str, scope: Iterable[str] | None = None) -> Caller:
        """A principal with the roles in `scope` active, or all."""
        ...

    async def view(self) -> View:
        """Something to look names up in; the targets of the kit do not."""
        ...

    async def fetch_head(self, key: RefKey) -> ObjId:
        """The head of a reference that was named in a guard."""
        ...


class PlacedTarget:
    """A target that knows its way; counts how far it was walked."""

    def __init__(
        self, kind: str, catalog: CatalogId | None, *way: tuple[str, ObjId], is_missing: bool = False
    ) -> None:
        self.kind = kind
        self.catalog = catalog
        self._way = way
        self._is_missing = is_missing
        self.steps = 0

    @property
    def name(self) -> str:
        return ".".join(name for name, _ in self._way)

    async def walk(self, view: View) -> AsyncIterator[ObjId]:
        if self._is_missing:
            raise NotFound("There is no such thing", name=self.name)
        for _, securable in self._way:
            self.steps += 1
            yield securable

    def place(self, depth: int) -> tuple[str, str]:
        kind = self.kind if depth == len(self._way) - 1 else "namespace"
        return kind, ".".join(name for name, _ in self._way[: depth + 1])


def reader_of(securable: ObjId, *privileges: Privilege) -> World:
    """`ann` is a `reader`, and readers have these on one securable."""
    return World({"ann": ("reader",)}, uses={"reader": ("role",)}, grants={("role", securable): privileges})


NOTHING = World({"ann": ("reader",)}, uses={"reader": ("role",)})


@pytest.mark.anyio
class AuthorizerKit:
    """Tests that hold for all authorizers."""

    has_guards = True
    """Whether decisions rest on heads of this store. One that asks elsewhere has none."""

    @pytest.fixture
    def stage(self) -> Stage:
        """The one thing that a binding supplies."""
        pytest.fail("A binding of the authorizer kit overrides the fixture stage")

    @pytest.fixture
    def authorizer(self, stage: Stage) -> Authorizer:
        return stage.open_handle()

    @pytest.fixture
    def table(self, stage: Stage) -> PlacedTarget:
        return PlacedTarget("table", stage.catalog, ("outer", OUTER), ("inner", INNER), ("table", TABLE))

    @pytest.fixture
    def sibling(self, stage: Stage) -> PlacedTarget:
        return PlacedTarget("table", stage.catalog, ("outer", OUTER), ("inner", INNER), ("sibling", SIBLING))

    @pytest.fixture
    def namespace(self, stage: Stage) -> PlacedTarget:
        return PlacedTarget("namespace", stage.catalog, ("outer", OUTER), ("inner", INNER))

    # --- what is allowed ---------------------------------------------------------------------------

    @pytest.mark.parametrize("securable", [THE_CATALOG, OUTER, INNER, TABLE])
    async def test_a_grant_covers_everything_below_it(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, securable: ObjId
    ) -> None:
        await stage.make(reader_of(securable, P.TABLE_READ_DATA))

        assert (await ask(stage, authorizer, ops.LOAD_TABLE_TO_READ, table)).is_allowed

    @pytest.mark.parametrize("securable", [SIBLING, OTHER_SPACE, VIEW, ObjId(2_000)])
    async def test_a_grant_covers_nothing_beside_it(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, securable: ObjId
    ) -> None:
        await stage.make(reader_of(securable, P.TABLE_READ_DATA, P.CATALOG_MANAGE_CONTENT))

        assert not (await ask(stage, authorizer, ops.LOAD_TABLE_TO_READ, table)).is_allowed

    async def test_a_grant_covers_nothing_above_it(
        self, stage: Stage, authorizer: Authorizer, namespace: PlacedTarget
    ) -> None:
        await stage.make(reader_of(TABLE, P.TABLE_LIST))

        assert not (await ask(stage, authorizer, ops.LIST_TABLES, namespace)).is_allowed

    @pytest.mark.parametrize(
        "held", [P.TABLE_WRITE_DATA, P.TABLE_READ_DATA, P.TABLE_DROP, P.VIEW_FULL_METADATA]
    )
    async def test_what_includes_a_privilege_meets_it_and_nothing_else_does(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, held: Privilege
    ) -> None:
        await stage.make(reader_of(TABLE, held))

        decision = await ask(stage, authorizer, ops.LOAD_TABLE, table)

        assert decision.is_allowed == bool(SATISFIED_BY[P.TABLE_READ_PROPERTIES] & held.bit)

    async def test_all_needs_must_be_met(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget
    ) -> None:
        await stage.make(reader_of(TABLE, P.TABLE_DROP))

        decision = await ask(stage, authorizer, ops.PURGE_TABLE, table)

        assert not decision.is_allowed
        assert decision.missing == (Missing("TABLE_WRITE_DATA", "table", "outer.inner.table"),)

    async def test_the_needs_of_all_targets_must_be_met(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, namespace: PlacedTarget
    ) -> None:
        await stage.make(reader_of(TABLE, P.TABLE_DROP))

        decision = await ask(stage, authorizer, ops.RENAME_TABLE, table, namespace)

        assert not decision.is_allowed
        assert {each.privilege for each in decision.missing} == {"TABLE_LIST", "TABLE_CREATE"}
        assert {each.target for each in decision.missing} == {"outer.inner"}

    async def test_an_operation_on_many_things_needs_its_privileges_on_each(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, sibling: PlacedTarget
    ) -> None:
        await stage.make(reader_of(TABLE, P.CATALOG_MANAGE_CONTENT))

        assert (await ask(stage, authorizer, ops.COMMIT_TRANSACTION, table)).is_allowed
        assert not (await ask(stage, authorizer, ops.COMMIT_TRANSACTION, table, sibling)).is_allowed
        assert not (await ask(stage, authorizer, ops.COMMIT_TRANSACTION, sibling, table)).is_allowed

    async def test_what_several_roles_have_adds_up(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget
    ) -> None:
        await stage.make(
            World(
                {"ann": ("dropper", "writer")},
                uses={"dropper": ("d",), "writer": ("w", "unused")},
                grants={("d", OUTER): (P.TABLE_DROP,), ("w", TABLE): (P.TABLE_WRITE_DATA,)},
            )
        )

        assert (await ask(stage, authorizer, ops.PURGE_TABLE, table)).is_allowed

    async def test_what_is_held_on_the_realm_counts_in_every_catalog(
        self, stage: Stage, authorizer: Authorizer
    ) -> None:
        await stage.make(World({"ann": ("admin",)}, realm={"admin": (P.SERVICE_MANAGE_ACCESS,)}))
        catalog = PlacedTarget("catalog", stage.catalog)

        assert (await ask(stage, authorizer, ops.DROP_CATALOG, catalog)).is_allowed
        assert (await ask(stage, authorizer, ops.CREATE_PRINCIPAL, RealmTarget("default"))).is_allowed
        assert (await ask(stage, authorizer, ops.DELETE_PRINCIPAL, PrincipalTarget("bob"))).is_allowed
        assert not (await ask(stage, authorizer, OPERATIONS["grant-on-catalog"], catalog)).is_allowed

    async def test_what_is_held_on_a_catalog_does_not_count_on_the_realm(
        self, stage: Stage, authorizer: Authorizer
    ) -> None:
        await stage.make(reader_of(THE_CATALOG, *P))

        for operation, target in (
            (ops.CREATE_CATALOG, RealmTarget("default")),
            (ops.LIST_CATALOGS, RealmTarget("default")),
            (ops.DELETE_PRINCIPAL, PrincipalTarget("bob")),
            (ops.ASSIGN_PRINCIPAL_ROLE, PrincipalRoleTarget("service_admin")),
            (ops.READ_EVENTS, RealmTarget("default")),
        ):
            assert not (await ask(stage, authorizer, operation, target)).is_allowed

    async def test_a_catalog_role_is_managed_by_who_manages_access_to_its_catalog(
        self, stage: Stage, authorizer: Authorizer
    ) -> None:
        role = CatalogRoleTarget(stage.catalog, "role")
        await stage.make(reader_of(OUTER, P.CATALOG_MANAGE_ACCESS))
        is_allowed_by_part = (await ask(stage, authorizer, ops.DELETE_CATALOG_ROLE, role)).is_allowed
        await stage.make(reader_of(THE_CATALOG, P.CATALOG_MANAGE_ACCESS))
        is_allowed_by_whole = (await ask(stage, authorizer, ops.DELETE_CATALOG_ROLE, role)).is_allowed

        assert (is_allowed_by_part, is_allowed_by_whole) == (False, True)

    # --- failing closed ----------------------------------------------------------------------------

    async def test_without_grants_nothing_is_allowed(self, stage: Stage, authorizer: Authorizer) -> None:
        await stage.make(NOTHING)

        for operation in OPERATIONS.values():
            targets = tuple(target_of_kind(stage, kind) for kind in operation.kinds)
            decision = await ask(stage, authorizer, operation, *targets)
            assert not decision.is_allowed, operation.name
            assert decision.missing or decision.reason

    async def test_roles_that_are_not_active_give_nothing(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget
    ) -> None:
        await stage.make(
            World(
                {"ann": ("reader", "guest")},
                uses={"reader": ("role",), "guest": ("none",)},
                grants={("role", TABLE): (P.TABLE_READ_DATA,)},
            )
        )
        view = await stage.view()

        as_guest = await authorizer.decide(stage.caller("ann", ["guest"]), ops.LOAD_TABLE, (table,), view)
        as_reader = await authorizer.decide(stage.caller("ann", ["reader"]), ops.LOAD_TABLE, (table,), view)

        assert (as_guest.is_allowed, as_reader.is_allowed) == (False, True)

    async def test_who_is_nobody_may_nothing_and_the_operator_everything(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget
    ) -> None:
        await stage.make(reader_of(THE_CATALOG, *P))
        view, nobody = await stage.view(), Caller("ann", stage.caller("ann").realm)

        refused = await authorizer.decide(nobody, ops.LOAD_TABLE, (table,), view)
        allowed = await authorizer.decide(operator_caller(), ops.LOAD_TABLE, (table,), view)

        assert (refused.is_allowed, allowed.is_allowed) == (False, True)
        assert refused.reason

    async def test_in_another_catalog_nothing_is_allowed(self, stage: Stage, authorizer: Authorizer) -> None:
        await stage.make(reader_of(THE_CATALOG, *P))
        elsewhere = PlacedTarget("table", CatalogId("999"), ("outer", OUTER), ("table", TABLE))

        try:
            is_allowed = (await ask(stage, authorizer, ops.LOAD_TABLE, elsewhere)).is_allowed
        except CynosureError:
            is_allowed = False

        assert not is_allowed

    async def test_without_a_view_only_rights_on_the_whole_catalog_count(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget
    ) -> None:
        caller = stage.caller("ann")
        await stage.make(reader_of(TABLE, P.TABLE_READ_DATA))
        by_table = await authorizer.decide(caller, ops.LOAD_TABLE, (table,), None)
        await stage.make(reader_of(THE_CATALOG, P.TABLE_READ_DATA))
        by_catalog = await authorizer.decide(caller, ops.LOAD_TABLE, (table,), None)

        assert (by_table.is_allowed, by_catalog.is_allowed) == (False, True)

    async def test_targets_that_an_operation_does_not_have_are_a_defect(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, namespace: PlacedTarget
    ) -> None:
        await stage.make(reader_of(THE_CATALOG, *P))

        for targets in ((), (namespace,), (table, namespace)):
            with pytest.raises(ValueError, match="load-table"):
                await ask(stage, authorizer, ops.LOAD_TABLE, *targets)
        with pytest.raises(ValueError, match="rename-table"):
            await ask(stage, authorizer, ops.RENAME_TABLE, namespace, table)

    # --- what does not exist -----------------------------------------------------------------------

    async def test_what_does_not_exist_is_said_to_who_has_no_right(
        self, stage: Stage, authorizer: Authorizer
    ) -> None:
        await stage.make(NOTHING)
        missing = PlacedTarget("table", stage.catalog, ("outer", OUTER), is_missing=True)

        with pytest.raises(NotFound):
            await ask(stage, authorizer, ops.LOAD_TABLE, missing)

    async def test_a_target_is_walked_to_only_as_far_as_needed(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, sibling: PlacedTarget
    ) -> None:
        await stage.make(reader_of(THE_CATALOG, P.TABLE_READ_DATA))
        await ask(stage, authorizer, ops.LOAD_TABLE, table)
        await stage.make(reader_of(OUTER, P.TABLE_READ_DATA))
        await ask(stage, authorizer, ops.LOAD_TABLE, sibling)

        assert (table.steps, sibling.steps) == (0, 1)

    # --- names and ids -----------------------------------------------------------------------------

    async def test_a_renamed_thing_keeps_its_grants_and_a_new_one_of_its_name_has_none(
        self, stage: Stage, authorizer: Authorizer
    ) -> None:
        await stage.make(reader_of(TABLE, P.TABLE_READ_DATA))
        renamed = PlacedTarget("table", stage.catalog, ("other", OTHER_SPACE), ("renamed", TABLE))
        created_anew = PlacedTarget(
            "table", stage.catalog, ("outer", OUTER), ("inner", INNER), ("table", ObjId(3_000))
        )

        assert (await ask(stage, authorizer, ops.LOAD_TABLE, renamed)).is_allowed
        assert not (await ask(stage, authorizer, ops.LOAD_TABLE, created_anew)).is_allowed

    # --- changes -----------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "after",
        [
            World({"ann": ()}, uses={"reader": ("role",)}, grants={("role", TABLE): (P.TABLE_READ_DATA,)}),
            World({"ann": ("reader",)}, uses={"reader": ()}, grants={("role", TABLE): (P.TABLE_READ_DATA,)}),
            World({"ann": ("reader",)}, grants={("role", TABLE): (P.TABLE_READ_DATA,)}),
            reader_of(TABLE, P.VIEW_LIST),
            NOTHING,
        ],
        ids=["principal role", "catalog role", "all catalog roles", "privilege", "grant"],
    )
    async def test_what_was_taken_away_is_gone_on_every_server(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, after: World
    ) -> None:
        servers = [authorizer, stage.open_handle()]
        await stage.make(reader_of(TABLE, P.TABLE_READ_DATA))
        before = [await ask(stage, each, ops.LOAD_TABLE, table) for each in servers]

        await stage.make(after)

        assert all(each.is_allowed for each in before)
        for each in servers:
            assert not (await ask(stage, each, ops.LOAD_TABLE, table)).is_allowed
        # What did not change kept its head: so it is the right one that is guarded.
        heads = {key: await stage.fetch_head(key) for key in before[0].guards}
        assert (heads != before[0].guards) == self.has_guards, "a commit must be able to notice"

    async def test_what_was_granted_counts_at_once(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget
    ) -> None:
        await stage.make(NOTHING)
        before = await ask(stage, authorizer, ops.LOAD_TABLE, table)

        await stage.make(reader_of(INNER, P.TABLE_READ_DATA))

        assert not before.is_allowed
        assert (await ask(stage, authorizer, ops.LOAD_TABLE, table)).is_allowed

    async def test_guards_are_the_heads_that_the_decision_rests_on(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget
    ) -> None:
        await stage.make(reader_of(TABLE, P.TABLE_READ_DATA))

        decision = await ask(stage, authorizer, ops.LOAD_TABLE, table)

        assert bool(decision.guards) == self.has_guards
        assert {key: await stage.fetch_head(key) for key in decision.guards} == decision.guards

    async def test_a_decision_never_mixes_what_was_true_with_what_is(
        self, stage: Stage, authorizer: Authorizer, sibling: PlacedTarget
    ) -> None:
        both, later = (
            World(
                {"ann": ("reader",)},
                uses={"reader": ("role",)},
                grants={("role", each): tuple(P) for each in on},
            )
            for on in ((TABLE, SIBLING), (SIBLING,))
        )
        await stage.make(both)

        class LosesItsGrants(PlacedTarget):
            async def walk(self, view: View) -> AsyncIterator[ObjId]:
                try:
                    async for each in super().walk(view):
                        yield each
                finally:
                    await stage.make(later)

        table = LosesItsGrants("table", stage.catalog, ("outer", OUTER), ("inner", INNER), ("table", TABLE))
        decision = await ask(stage, authorizer, ops.COMMIT_TRANSACTION, table, sibling)

        heads = {key: await stage.fetch_head(key) for key in decision.guards}
        is_still_true = heads == decision.guards
        assert not (decision.is_allowed and is_still_true and self.has_guards)

    # --- explanations ------------------------------------------------------------------------------

    @pytest.mark.parametrize("securable", [THE_CATALOG, OUTER, INNER, TABLE])
    @pytest.mark.parametrize("held", [P.TABLE_DROP, P.TABLE_FULL_METADATA, P.CATALOG_MANAGE_CONTENT])
    async def test_an_explanation_says_the_same_and_why(
        self, stage: Stage, authorizer: Authorizer, table: PlacedTarget, securable: ObjId, held: Privilege
    ) -> None:
        await stage.make(reader_of(securable, held))
        caller, view = stage.caller("ann"), await stage.view()

        plain = await authorizer.decide(caller, ops.PURGE_TABLE, (table,), view)
        told = await authorizer.decide(caller, ops.PURGE_TABLE, (table,), view, explain=True)

        assert (told.is_allowed, told.missing, told.guards) == (plain.is_allowed, plain.missing, plain.guards)
        assert plain.path == ()
        met = {step.needed for step in told.path}
        assert met | {each.privilege for each in told.missing} == {"TABLE_DROP", "TABLE_WRITE_DATA"}
        place = {THE_CATALOG: "catalog", TABLE: "table"}.get(securable, "namespace")
        for step in told.path:
            assert (step.principal_role, step.catalog_role, step.on_kind) == ("reader", "role", place)
            assert step.held == held.name
            assert held in members(SATISFIED_BY[Privilege[step.needed]])
            assert step.target == table.name

    async def test_an_explanation_names_the_role_that_holds_something_on_the_realm(
        self, stage: Stage, authorizer: Authorizer
    ) -> None:
        world = World(
            {"ann": ("guest", "admin")},
            realm={"guest": (P.PRINCIPAL_LIST,), "admin": (P.SERVICE_MANAGE_ACCESS,)},
        )
        await stage.make(world)

        decision = await authorizer.decide(
            stage.caller("ann"), ops.CREATE_PRINCIPAL, (RealmTarget("default"),), None, explain=True
        )

        (step,) = decision.path
        assert (step.principal_role, step.catalog_role, step.on_kind) == ("admin", "", "realm")
        assert (step.needed, step.held) == ("PRINCIPAL_CREATE", "SERVICE_MANAGE_ACCESS")


async def ask(stage: Stage, authorizer: Authorizer, operation: Operation, *targets: Target) -> Decision:
    """What `ann` may do, with all her roles."""
    return await authorizer.decide(stage.caller("ann"), operation, targets, await stage.view())


def target_of_kind(stage: Stage, kind: str) -> Target:
    """Some target of this kind, inside the catalog when it can be."""
    match kind:
        case "realm":
            return RealmTarget("default")
        case "principal":
            return PrincipalTarget("bob")
        case "principal-role":
            return PrincipalRoleTarget("reader")
        case "catalog-role":
            return CatalogRoleTarget(stage.catalog, "role")
        case "catalog":
            return PlacedTarget("catalog", stage.catalog)
        case "namespace":
            return PlacedTarget("namespace", stage.catalog, ("outer", OUTER))
    return PlacedTarget(kind, stage.catalog, ("outer", OUTER), ("thing", TABLE))
