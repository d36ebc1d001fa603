"""Policies that restrict are managed by those who manage access, whatever rights on content one has (I48)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.rbac.privileges import GRANTABLE
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.bulk_import import ListedTable, import_tables
from cynosure.catalog.errors import InvalidPolicy, NoSuchPolicy, NoSuchTarget
from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_applicable_policies import list_applicable_policies, place_of
from cynosure.catalog.operations.list_namespaces import list_namespaces
from cynosure.catalog.operations.list_policies import list_policies
from cynosure.catalog.operations.load_policy import load_policy
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.policies.attached import load_attached
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.roles.securables import Grant
from cynosure.catalog.roles.sweep_grants import SweepPlaces, sweep_grants
from cynosure.storage.location import Location
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table, on_view
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog
from tests.catalog.policies.made import (
    CATALOG,
    ENABLED,
    NAMESPACE,
    NS,
    TABLE,
    applicable,
    attach,
    create,
    names,
    policy,
)
from tests.catalog.tables import T, decoded
from tests.catalog.world import VERSION, Lake, open_lake

pytestmark = pytest.mark.anyio

FILTER = "cynosure.row-filter"
ROWS = '{"enable":true,"filter":"id > 10","roles":["analysts"]}'
FEWER = '{"enable":true,"filter":"id > 20","roles":["analysts"]}'
EVERYTHING_BUT_ACCESS = [
    Grant("catalog", each) for each in sorted(GRANTABLE["catalog"] - {P.CATALOG_MANAGE_ACCESS})
]
ON_POLICY = [
    Grant("policy", each, NS, "p") for each in sorted(GRANTABLE["policy"] - {P.CATALOG_MANAGE_ACCESS})
]
ON_TABLE = on_table(T, *sorted(GRANTABLE["table"] - {P.CATALOG_MANAGE_ACCESS}))
Act = Callable[[Lake, Caller], Awaitable[object]]

ACTS: list[tuple[str, Act]] = [
    ("create", lambda w, who: create_policy(w.catalog, who, CreatePolicy(policy("new"), FILTER, ROWS))),
    ("update", lambda w, who: update_policy(w.catalog, who, policy("p"), PolicyUpdate(FEWER))),
    ("describe", lambda w, who: update_policy(w.catalog, who, policy("p"), PolicyUpdate(description="x"))),
    ("attach to table", lambda w, who: attach_policy(w.catalog, who, policy("p"), TABLE, {"k": "v"})),
    ("attach to namespace", lambda w, who: attach_policy(w.catalog, who, policy("p"), NAMESPACE)),
    ("attach to catalog", lambda w, who: attach_policy(w.catalog, who, policy("p"), CATALOG)),
    ("detach from catalog", lambda w, who: detach_policy(w.catalog, who, policy("p"), CATALOG)),
    ("detach from namespace", lambda w, who: detach_policy(w.catalog, who, policy("p"), NAMESPACE)),
    ("detach from table", lambda w, who: detach_policy(w.catalog, who, policy("p"), TABLE)),
    ("drop", lambda w, who: drop_policy(w.catalog, who, policy("p"), is_detaching=True)),
]
"""In the order in which each can be done after the one before."""


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as opened:
        await furnish(opened)
        yield opened


async def furnish(lake: Lake) -> None:
    await create_principal_role(lake.people.identities, ROOT, NewPrincipalRole("analysts"))
    await create(lake.catalog, "p", policy_type=FILTER, content=ROWS)
    for to in (TABLE, NAMESPACE, CATALOG):
        await attach(lake.catalog, "p", to)


async def test_rights_on_content_do_not_change_a_restriction(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *EVERYTHING_BUT_ACCESS, *ON_POLICY, *ON_TABLE)
    before = await lake.heads()

    for name, act in ACTS:
        with pytest.raises(AccessDenied) as refused:
            await act(lake, ann)
        missing = {each.privilege for each in refused.value.decision.missing}
        assert missing == {"CATALOG_MANAGE_ACCESS"}, name
        assert "restriction" in refused.value.operation.name

    assert await lake.heads() == before


async def test_who_manages_access_manages_restrictions(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.CATALOG_MANAGE_ACCESS))

    for _, act in ACTS:
        await act(lake, ann)

    assert await applicable(lake.catalog, "ns", "t") == []
    with pytest.raises(AccessDenied):
        await create_policy(
            lake.catalog, ann, CreatePolicy(policy("plain"), "system.data-compaction", ENABLED)
        )


async def test_managing_access_to_the_target_does_not_suffice(lake: Lake) -> None:
    on_target = on_table(T, P.CATALOG_MANAGE_ACCESS)
    ann = await lake.people.add("ann", lake.catalog, *EVERYTHING_BUT_ACCESS, *on_target)

    with pytest.raises(AccessDenied):
        await detach_policy(lake.catalog, ann, policy("p"), TABLE)
    await lake.people.grant("ann", lake.catalog, Grant("policy", P.CATALOG_MANAGE_ACCESS, NS, "p"))
    await detach_policy(lake.catalog, ann, policy("p"), TABLE)
    with pytest.raises(AccessDenied):
        await detach_policy(lake.catalog, ann, policy("p"), NAMESPACE)


async def test_a_service_that_acts_for_somebody_manages_no_restrictions(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.CATALOG_MANAGE_ACCESS))
    gate = await lake.people.add("gateway")
    await set_trusted_service(lake.people.identities, ROOT, "gateway", is_trusted=True)
    assert ann.identity is not None
    assert gate.identity is not None
    acting = msgspec.structs.replace(
        ann,
        actor="gateway",
        identity=msgspec.structs.replace(
            ann.identity, actor_id=gate.identity.principal_id, actor_credential=gate.identity.credential
        ),
    )
    before = await lake.heads()

    for _, act in ACTS:
        with pytest.raises(AccessDenied) as refused:
            await act(lake, acting)
        assert "acts for it" in refused.value.fix

    assert await lake.heads() == before
    await lake.people.grant("ann", lake.catalog, *on_namespace(NS, P.POLICY_READ))
    assert (await load_policy(lake.catalog, acting, policy("p"))).version == 0


async def test_a_restriction_is_neither_alone_on_its_target_nor_replaced(lake: Lake) -> None:
    await create(lake.catalog, "q", policy_type=FILTER, content=FEWER)

    await attach(lake.catalog, "q", TABLE)

    found = await applicable(lake.catalog, "ns", "t")
    assert sorted(found) == [("p", False), ("p", True), ("p", True), ("q", False)]


async def test_what_a_restriction_says_is_for_those_who_may_read_the_policy(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    await create(lake.catalog, "plain")
    await attach(lake.catalog, "plain", TABLE)
    place = place_of(lake.catalog, NS, "t")

    async def contents() -> set[str | None]:
        page = await list_applicable_policies(lake.catalog, ann, place, Paging())
        return {each.attached.policy.content for each in page.policies}

    assert await contents() == {None, ENABLED}
    await lake.people.grant("ann", lake.catalog, *on_namespace(NS, P.POLICY_READ))
    assert await contents() == {ROWS, ENABLED}


async def test_a_table_known_by_its_file_only_is_read_before_it_is_restricted(lake: Lake) -> None:
    metadata = decoded(await load_table(lake.catalog, ROOT, T))
    other = await make_catalog(lake.directory, lake.folder, "other")
    metadata["location"] = f"{other.base.text}/t"
    file = Location.parse(f"{other.base.text}/t/metadata/00003-x.metadata.json")
    await other.files.write(file, msgspec.json.encode(metadata))
    await import_tables(other, ROOT, [ListedTable(T, file.text)])
    await create(other, "p", policy_type=FILTER, content=ROWS)

    await attach(other, "p", TABLE)

    assert await applicable(other, "ns", "t") == [("p", False)]


async def test_new_content_must_fit_what_the_restriction_is_attached_to(lake: Lake) -> None:
    elsewhere = '{"enable":true,"filter":"nowhere = 1","roles":["analysts"]}'
    on_data = '{"enable":true,"filter":"data = \'x\'","roles":["analysts"]}'

    async def detail() -> bytes:
        *_, on_the_table = await load_attached(await lake.catalog.read(), lake.catalog.table(T))
        return bytes(on_the_table.mapping.detail)

    before = await detail()
    with pytest.raises(InvalidPolicy):
        await update_policy(lake.catalog, ROOT, policy("p"), PolicyUpdate(elsewhere))
    assert await detail() == before
    await update_policy(lake.catalog, ROOT, policy("p"), PolicyUpdate(on_data))
    assert await detail() != before

    await drop_table(lake.catalog, ROOT, T)
    await update_policy(lake.catalog, ROOT, policy("p"), PolicyUpdate(elsewhere))


async def test_the_log_tells_restrictions_from_other_policies(lake: Lake) -> None:
    start = (await read_changes(lake.catalog, ROOT)).cursor

    for _, act in ACTS:
        await act(lake, ROOT)

    told = (await read_changes(lake.catalog, ROOT, start=start)).changes
    assert {each.operation for each in told} == {
        "create-restriction",
        "update-restriction",
        "attach-restriction-to-table",
        "detach-restriction-from-catalog",
        "detach-restriction-from-namespace",
        "detach-restriction-from-table",
        "drop-restriction",
    }


# --- what is seen -------------------------------------------------------------------------------------------

VEILED = AuthSettings(hide_existence=True, filter_lists=True)


async def test_a_policy_that_is_not_seen_does_not_exist(tmp_path: Path) -> None:
    async with open_lake(tmp_path, VEILED) as lake:
        await furnish(lake)
        ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
        missing = policy("missing")

        for path in (policy("p"), missing):
            for act in (
                load_policy(lake.catalog, ann, path),
                update_policy(lake.catalog, ann, path, PolicyUpdate(FEWER)),
                drop_policy(lake.catalog, ann, path, is_detaching=True),
                attach_policy(lake.catalog, ann, path, TABLE),
                detach_policy(lake.catalog, ann, path, TABLE),
            ):
                with pytest.raises(NoSuchPolicy) as refused:
                    await act
                assert isinstance(refused.value.__cause__, AccessDenied)
        await lake.people.grant("ann", lake.catalog, *on_namespace(NS, P.POLICY_LIST))
        with pytest.raises(AccessDenied):
            await load_policy(lake.catalog, ann, policy("p"))


async def test_a_target_that_is_not_seen_does_not_exist(tmp_path: Path) -> None:
    async with open_lake(tmp_path, VEILED) as lake:
        await create(lake.catalog, "p")
        await create_view(lake.catalog, ROOT, CreateView(Identifier(NS, "w"), SCHEMA, VERSION))
        rights = [Grant("policy", each, NS, "p") for each in (P.POLICY_READ, P.POLICY_ATTACH)]
        ann = await lake.people.add("ann", lake.catalog, *rights)

        for path in (("ns", "t"), ("ns", "w"), ("ns", "missing"), ("missing", "t")):
            with pytest.raises(NoSuchTarget) as refused:
                await attach_policy(lake.catalog, ann, policy("p"), AttachTo("table-like", path))
            assert isinstance(refused.value.__cause__, AccessDenied)


async def test_lists_show_the_policies_that_somebody_may_list(tmp_path: Path) -> None:
    async with open_lake(tmp_path, VEILED) as lake:
        for name in ("a", "b", "c"):
            await create(lake.catalog, name)
        seen = [Grant("policy", P.POLICY_LIST, NS, name) for name in ("a", "c")]
        ann = await lake.people.add("ann", lake.catalog, *seen)

        listed = [
            names(await list_policies(lake.catalog, ann, NS, paging, policy_type=policy_type))
            for paging in (Paging(), Paging("", 5))
            for policy_type in ("", "system.data-compaction", "system.snapshot-expiry")
        ]
        spaces = msgspec.json.decode(await list_namespaces(lake.catalog, ann, (), Paging()))

        assert listed == [["a", "c"], ["a", "c"], []] * 2
        assert spaces["namespaces"] == [["ns"]]


async def test_grants_on_a_policy_go_with_it(lake: Lake) -> None:
    await create(lake.catalog, "plain")
    grant = Grant("policy", P.POLICY_READ, NS, "plain")
    kept = on_view(Identifier(NS, "v"), P.VIEW_LIST)
    await lake.people.add("ann", lake.catalog, grant, *kept)
    await drop_policy(lake.catalog, ROOT, policy("plain"))

    removed = await sweep_grants(lake.catalog, ROOT, SweepPlaces())

    assert removed == 1
