"""Policies: created, changed, attached, inherited, dropped (I46, I47, I49)."""

import asyncio

import msgspec
import pytest

from cynosure.catalog import errors
from cynosure.catalog.directory import Directory
from cynosure.catalog.feed.read import read_changes
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_applicable_policies import list_applicable_policies, place_of
from cynosure.catalog.operations.list_policies import list_policies
from cynosure.catalog.operations.load_policy import load_policy
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.catalog.policies.mappings import MAPPINGS
from cynosure.catalog.policies.placing import AttachTo
from cynosure.common.errors import BadInput, BadPageToken
from cynosure.persistence.history.check import check_reference
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.policies.made import (
    CATALOG,
    COMPACTION,
    ENABLED,
    EXPIRY,
    NAMESPACE,
    NS,
    TABLE,
    applicable,
    attach,
    create,
    names,
    policy,
)
from tests.catalog.tables import T, make
from tests.catalog.world import VERSION

pytestmark = pytest.mark.anyio
ALL = Paging()


async def mappings(catalog: OpenCatalog) -> int:
    """Entries of the index of attachments: two for each."""
    return len(await (await catalog.read()).scan(MAPPINGS, limit=1_000))


# --- created, loaded, changed, dropped ----------------------------------------------------------------------


async def test_a_policy_is_loaded_as_it_was_created(catalog: OpenCatalog) -> None:
    wanted = CreatePolicy(policy("p"), COMPACTION, ENABLED, "Keep files large.")

    made = await create_policy(catalog, ROOT, wanted)

    loaded = await load_policy(catalog, ROOT, policy("p"))
    assert loaded == made
    assert (loaded.type, loaded.content, loaded.description) == (COMPACTION, ENABLED, "Keep files large.")
    assert (loaded.version, loaded.created_by) == (0, "root")


async def test_a_policy_and_a_table_may_have_the_same_name(catalog: OpenCatalog) -> None:
    await make(catalog)

    await create(catalog, "t")

    with pytest.raises(errors.PolicyExists):
        await create(catalog, "t", policy_type=EXPIRY)


@pytest.mark.parametrize("policy_type", ["", "system.nothing", "cynosure.nothing", "SYSTEM.data-compaction"])
async def test_there_are_no_policies_of_other_types(catalog: OpenCatalog, policy_type: str) -> None:
    with pytest.raises(BadInput) as refused:
        await create(catalog, "p", policy_type=policy_type)

    assert refused.value.field == "type"


@pytest.mark.parametrize("content", [None, "", "x" * 70_000, "\ud800"])
async def test_a_policy_needs_content_of_its_type(catalog: OpenCatalog, content: str | None) -> None:
    with pytest.raises(errors.InvalidPolicy) as refused:
        await create_policy(catalog, ROOT, CreatePolicy(policy("p"), COMPACTION, content))

    assert refused.value.field == "content"


async def test_a_policy_needs_its_namespace(catalog: OpenCatalog) -> None:
    with pytest.raises(errors.NoSuchNamespace):
        await create_policy(catalog, ROOT, CreatePolicy(policy("p", ("no",)), COMPACTION, ENABLED))


async def test_a_change_is_made_to_the_version_it_is_meant_for(catalog: OpenCatalog) -> None:
    await create(catalog, "p")
    first = PolicyUpdate('{"enable":false}', None, current_version=0)

    changed = await update_policy(catalog, ROOT, policy("p"), first)
    with pytest.raises(errors.PolicyVersionMismatch):
        await update_policy(catalog, ROOT, policy("p"), PolicyUpdate(ENABLED, None, current_version=0))

    assert (changed.version, changed.content) == (1, '{"enable":false}')
    assert await load_policy(catalog, ROOT, policy("p")) == changed


async def test_what_a_change_leaves_out_stays(catalog: OpenCatalog) -> None:
    wanted = CreatePolicy(policy("p"), COMPACTION, ENABLED, "one")
    await create_policy(catalog, ROOT, wanted)

    described = await update_policy(catalog, ROOT, policy("p"), PolicyUpdate(description="two"))
    same = await update_policy(catalog, ROOT, policy("p"), PolicyUpdate(description="two"))

    assert (described.content, described.description, described.version) == (ENABLED, "two", 1)
    assert same.version == 1


async def test_a_change_to_other_content_is_refused(catalog: OpenCatalog) -> None:
    await create(catalog, "p")

    with pytest.raises(errors.InvalidPolicy):
        await update_policy(catalog, ROOT, policy("p"), PolicyUpdate("{}"))

    assert (await load_policy(catalog, ROOT, policy("p"))).version == 0


async def test_a_policy_that_is_attached_is_dropped_only_with_its_attachments(catalog: OpenCatalog) -> None:
    await make(catalog)
    await create(catalog, "p")
    for to in (CATALOG, TABLE):
        await attach(catalog, "p", to)

    with pytest.raises(errors.PolicyInUse) as refused:
        await drop_policy(catalog, ROOT, policy("p"))
    before = await mappings(catalog)
    await drop_policy(catalog, ROOT, policy("p"), is_detaching=True)

    assert refused.value.details["targets"] == 2
    assert (before, await mappings(catalog)) == (4, 0)
    with pytest.raises(errors.NoSuchPolicy):
        await load_policy(catalog, ROOT, policy("p"))


async def test_a_namespace_with_policies_is_not_empty(catalog: OpenCatalog) -> None:
    await create(catalog, "p")

    with pytest.raises(errors.NamespaceNotEmpty):
        await drop_namespace(catalog, ROOT, NS)

    await drop_policy(catalog, ROOT, policy("p"))
    await drop_namespace(catalog, ROOT, NS)


# --- lists --------------------------------------------------------------------------------------------------


async def test_policies_are_listed_whole_by_type_and_in_pages(catalog: OpenCatalog) -> None:
    for number in range(7):
        await create(catalog, f"p{number}", policy_type=EXPIRY if number % 3 else COMPACTION)

    whole = names(await list_policies(catalog, ROOT, NS, ALL))
    of_type = names(await list_policies(catalog, ROOT, NS, ALL, policy_type=EXPIRY))
    pages: list[str] = []
    token: str | None = ""
    while token is not None:
        body = await list_policies(catalog, ROOT, NS, Paging(token, 2), policy_type=EXPIRY)
        pages += names(body)
        token = msgspec.json.decode(body).get("next-page-token")

    assert whole == [f"p{number}" for number in range(7)]
    assert of_type == pages == ["p1", "p2", "p4", "p5"]


@pytest.mark.parametrize("policy_type", ["", EXPIRY])
@pytest.mark.parametrize("paging", [ALL, Paging("", 1)])
async def test_no_policies_are_listed_in_no_namespace(
    catalog: OpenCatalog, policy_type: str, paging: Paging
) -> None:
    assert names(await list_policies(catalog, ROOT, NS, paging, policy_type=policy_type)) == []
    with pytest.raises(errors.NoSuchNamespace):
        await list_policies(catalog, ROOT, ("no",), paging, policy_type=policy_type)


async def test_lists_by_a_type_that_is_not_known_are_refused(catalog: OpenCatalog) -> None:
    with pytest.raises(BadInput, match=r"policyType.*snapshot-expiri"):
        await list_policies(catalog, ROOT, NS, ALL, policy_type="system.snapshot-expiri")
    with pytest.raises(BadInput, match=r"policyType.*snapshot-expiri"):
        await list_applicable_policies(
            catalog, ROOT, place_of(catalog, NS, None), ALL, policy_type="system.snapshot-expiri"
        )


@pytest.mark.parametrize("is_attached", [False, True])
@pytest.mark.parametrize("paging", [ALL, Paging("", 1)])
async def test_nothing_counts_where_there_is_nothing(
    catalog: OpenCatalog, is_attached: bool, paging: Paging
) -> None:
    if is_attached:
        await create(catalog, "p")
        await attach(catalog, "p", CATALOG)

    with pytest.raises(errors.NoSuchNamespace):
        await list_applicable_policies(catalog, ROOT, place_of(catalog, ("no",), None), paging)
    with pytest.raises(errors.NoSuchTable):
        await list_applicable_policies(catalog, ROOT, place_of(catalog, NS, "no"), paging)


# --- attached, inherited ------------------------------------------------------------------------------------


async def test_the_nearest_policy_of_a_type_counts(catalog: OpenCatalog) -> None:
    await make(catalog)
    for name, to in (("on-catalog", CATALOG), ("on-namespace", NAMESPACE), ("on-table", TABLE)):
        await create(catalog, name)
        await attach(catalog, name, to)
    await create(catalog, "expiry", policy_type=EXPIRY)
    await attach(catalog, "expiry", CATALOG)

    assert await applicable(catalog) == [("on-catalog", False), ("expiry", False)]
    assert await applicable(catalog, "ns") == [("expiry", True), ("on-namespace", False)]
    assert await applicable(catalog, "ns", "t") == [("expiry", True), ("on-table", False)]
    assert await applicable(catalog, "ns", "t", policy_type=EXPIRY) == [("expiry", True)]
    await detach_policy(catalog, ROOT, policy("on-table"), TABLE)
    assert await applicable(catalog, "ns", "t") == [("expiry", True), ("on-namespace", True)]


async def test_what_counts_comes_in_pages_that_belong_to_their_target(catalog: OpenCatalog) -> None:
    for name, policy_type in (("a", COMPACTION), ("b", EXPIRY), ("c", "system.metadata-compaction")):
        await create(catalog, name, policy_type=policy_type)
        await attach(catalog, name, CATALOG)
    place = place_of(catalog, NS, None)

    first = await list_applicable_policies(catalog, ROOT, place, Paging("", 2))
    await detach_policy(catalog, ROOT, policy("a"), CATALOG)
    second = await list_applicable_policies(catalog, ROOT, place, Paging(first.next_token, 2))

    found = [each.attached.name for each in (*first.policies, *second.policies)]
    assert found == ["a", "b", "c"]
    assert second.next_token is None
    with pytest.raises(BadPageToken):
        await list_applicable_policies(
            catalog, ROOT, place_of(catalog, (), None), Paging(first.next_token, 2)
        )


async def test_one_policy_of_a_type_is_attached_to_a_target(catalog: OpenCatalog) -> None:
    await create(catalog, "p")
    await create(catalog, "q")
    await attach(catalog, "p", NAMESPACE)

    with pytest.raises(errors.PolicyTypeAttached):
        await attach(catalog, "q", NAMESPACE)

    await detach_policy(catalog, ROOT, policy("p"), NAMESPACE)
    await attach(catalog, "q", NAMESPACE)
    assert await applicable(catalog, "ns") == [("q", False)]


async def test_attaching_again_replaces_the_parameters(catalog: OpenCatalog) -> None:
    await create(catalog, "p")
    await attach(catalog, "p", NAMESPACE, a="1", b="2")

    await attach(catalog, "p", NAMESPACE, c="3")

    head = (await catalog.read()).commit_id
    await attach(catalog, "p", NAMESPACE, c="3")
    page = await list_applicable_policies(catalog, ROOT, place_of(catalog, NS, None), ALL)
    assert page.policies[0].attached.mapping.parameters == {"c": "3"}
    assert (await catalog.read()).commit_id == head
    assert await mappings(catalog) == 2


async def test_what_is_not_attached_is_not_detached(catalog: OpenCatalog) -> None:
    await create(catalog, "p")
    await attach(catalog, "p", CATALOG)

    with pytest.raises(errors.NoSuchMapping):
        await detach_policy(catalog, ROOT, policy("p"), NAMESPACE)

    assert await applicable(catalog) == [("p", False)]


@pytest.mark.parametrize(
    "to",
    [
        AttachTo("table-like", ("ns", "no")),
        AttachTo("table-like", ("no", "t")),
        AttachTo("namespace", ("no",)),
    ],
)
async def test_nothing_is_attached_to_what_is_not_there(catalog: OpenCatalog, to: AttachTo) -> None:
    await create(catalog, "p")

    with pytest.raises(errors.NoSuchTarget):
        await attach(catalog, "p", to)
    with pytest.raises(errors.NoSuchTarget):
        await detach_policy(catalog, ROOT, policy("p"), to)
    with pytest.raises(errors.NoSuchPolicy):
        await attach(catalog, "no", to)


@pytest.mark.parametrize(
    "to",
    [
        AttachTo("catalog", ("ns",)),
        AttachTo("namespace"),
        AttachTo("namespace", ("",)),
        AttachTo("table-like"),
        AttachTo("table-like", ("t",)),
        AttachTo("table-like", ("ns", "a\x1fb")),
    ],
)
async def test_a_target_is_named_as_what_it_is(catalog: OpenCatalog, to: AttachTo) -> None:
    await create(catalog, "p")

    with pytest.raises(BadInput) as refused:
        await attach(catalog, "p", to)

    assert refused.value.field == "target.path"


async def test_a_view_cannot_have_a_policy(catalog: OpenCatalog) -> None:
    await create_view(catalog, ROOT, CreateView(Identifier(NS, "v"), SCHEMA, VERSION))
    await create(catalog, "p")

    with pytest.raises(errors.NotAttachable):
        await attach(catalog, "p", AttachTo("table-like", ("ns", "v")))


# --- what stays when targets move ---------------------------------------------------------------------------


async def test_a_table_keeps_its_policies_when_it_is_renamed_or_overwritten(catalog: OpenCatalog) -> None:
    await make(catalog)
    await create_namespace(catalog, ROOT, ("other",), {})
    await create(catalog, "p")
    await attach(catalog, "p", TABLE)

    moved = Identifier(("other",), "u")
    await rename_table(catalog, ROOT, T, moved)

    assert await applicable(catalog, "other", "u") == [("p", False)]
    await make(catalog)
    assert await applicable(catalog, "ns", "t") == []


async def test_a_table_that_is_made_anew_has_none_of_the_old_ones_policies(catalog: OpenCatalog) -> None:
    await make(catalog)
    await create(catalog, "p")
    await attach(catalog, "p", TABLE)
    gone = await unregister_table(catalog, ROOT, T)
    await register_table(catalog, ROOT, T, gone.metadata_location or "")

    assert await applicable(catalog, "ns", "t") == []
    with pytest.raises(errors.PolicyInUse):
        await drop_policy(catalog, ROOT, policy("p"))


async def test_a_catalog_whose_policies_and_namespaces_are_gone_is_empty(
    directory: Directory, catalog: OpenCatalog
) -> None:
    await create(catalog, "p")
    await attach(catalog, "p", CATALOG)
    with pytest.raises(errors.CatalogNotEmpty):
        await drop_catalog(directory, ROOT, "lake")
    await drop_policy(catalog, ROOT, policy("p"), is_detaching=True)
    await drop_namespace(catalog, ROOT, NS)

    await drop_catalog(directory, ROOT, "lake")


async def test_the_feed_tells_what_happened_to_policies(catalog: OpenCatalog) -> None:
    await make(catalog)
    start = (await read_changes(catalog, ROOT)).cursor
    await create(catalog, "p")
    await attach(catalog, "p", TABLE)
    await update_policy(catalog, ROOT, policy("p"), PolicyUpdate('{"enable":false}'))
    await detach_policy(catalog, ROOT, policy("p"), TABLE)
    await attach(catalog, "p", CATALOG)
    await drop_table(catalog, ROOT, T)
    await drop_policy(catalog, ROOT, policy("p"), is_detaching=True)

    told = (await read_changes(catalog, ROOT, start=start)).changes

    assert [(each.kind, each.name, each.target_kind, each.target) for each in told] == [
        ("policy-created", "p", "", ""),
        ("policy-attached", "p", "table", "ns.t"),
        ("policy-updated", "p", "", ""),
        ("policy-detached", "p", "table", "ns.t"),
        ("policy-attached", "p", "catalog", "lake"),
        ("table-dropped", "t", "", ""),
        ("policy-detached", "p", "catalog", "lake"),
        ("policy-dropped", "p", "", ""),
    ]
    assert len({each.entity_id for each in told if each.kind.startswith("policy")}) == 1


# --- at once ------------------------------------------------------------------------------------------------


async def test_of_two_policies_of_a_type_that_are_attached_at_once_one_is(catalog: OpenCatalog) -> None:
    """I47."""
    for name in ("p", "q"):
        await create(catalog, name)

    ended = await asyncio.gather(
        *(attach(catalog, name, NAMESPACE) for name in ("p", "q")), return_exceptions=True
    )

    assert sorted(type(each).__name__ for each in ended) == ["NoneType", "PolicyTypeAttached"]
    assert await mappings(catalog) == 2


@pytest.mark.parametrize("other", ["drop-policy", "drop-table"])
async def test_of_attaching_and_dropping_at_once_nothing_is_left_dangling(
    catalog: OpenCatalog, other: str
) -> None:
    """I46."""
    await make(catalog)
    await create(catalog, "p")
    drop = drop_policy(catalog, ROOT, policy("p")) if other == "drop-policy" else drop_table(catalog, ROOT, T)

    attached, dropped = await asyncio.gather(attach(catalog, "p", TABLE), drop, return_exceptions=True)

    if other == "drop-policy":
        # Whichever came first: the other saw it.
        assert [type(attached), type(dropped)] in (
            [type(None), errors.PolicyInUse],
            [errors.NoSuchPolicy, type(None)],
        )
    else:
        assert dropped is None
        assert attached is None or isinstance(attached, errors.NoSuchTarget)
    assert await mappings(catalog) == (2 if attached is None else 0)
    report = await check_reference(catalog.store, (await catalog.committer.read()).ref)
    assert not report.problems
