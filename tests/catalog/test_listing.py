import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.auth.rbac import operations as ops
from cynosure.catalog.listing import Listing, Paging, encode_list, list_encoded
from cynosure.catalog.names import Identifier, children_prefix, namespace_key, table_key, tables_prefix
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.recent_lists import ListKey, RecentLists, WholeList
from cynosure.persistence.spi import CatalogId, ObjId, RealmId
from cynosure.testing.small_catalog import ROOT

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
TOP = Listing(ops.LIST_NAMESPACES, (), children_prefix(()))


def key(prefix: bytes, catalog: str = "c") -> ListKey:
    return ListKey(RealmId("r"), CatalogId(catalog), prefix)


@given(st.lists(NAMES, min_size=1, max_size=3), st.lists(NAMES, max_size=5))
def test_encoded_tables_are_what_a_json_encoder_makes(levels: list[str], names: list[str]) -> None:
    namespace = tuple(levels)
    keys = [table_key(Identifier(namespace, name)) for name in names]

    encoded = encode_list(Listing(ops.LIST_TABLES, namespace, tables_prefix(namespace)), keys, None)

    expected = [{"namespace": levels, "name": name} for name in names]
    assert msgspec.json.decode(encoded) == {"identifiers": expected}


@given(st.lists(NAMES, max_size=3), st.lists(NAMES, max_size=5))
def test_encoded_namespaces_are_what_a_json_encoder_makes(levels: list[str], names: list[str]) -> None:
    parent = tuple(levels)
    keys = [namespace_key((*parent, name)) for name in names]

    encoded = encode_list(Listing(ops.LIST_NAMESPACES, parent, children_prefix(parent)), keys, "token")

    expected = [[*levels, name] for name in names]
    assert msgspec.json.decode(encoded) == {"namespaces": expected, "next-page-token": "token"}


@pytest.mark.anyio
async def test_a_list_is_read_once_per_commit(catalog: OpenCatalog) -> None:
    first = await list_encoded(catalog, ROOT, TOP, Paging())

    assert await list_encoded(catalog, ROOT, TOP, Paging()) is first
    assert await list_encoded(catalog, ROOT, TOP, Paging(token="", size=1)) is first
    await create_namespace(catalog, ROOT, ("other",), {})
    assert msgspec.json.decode(await list_encoded(catalog, ROOT, TOP, Paging())) == {
        "namespaces": [["ns"], ["other"]]
    }
    await drop_namespace(catalog, ROOT, ("other",))
    assert await list_encoded(catalog, ROOT, TOP, Paging()) == first


@pytest.mark.anyio
async def test_a_page_with_a_token_never_comes_from_memory(catalog: OpenCatalog) -> None:
    await create_namespace(catalog, ROOT, ("other",), {})
    await list_encoded(catalog, ROOT, TOP, Paging())

    page = msgspec.json.decode(await list_encoded(catalog, ROOT, TOP, Paging(token="", size=1)))
    rest = msgspec.json.decode(
        await list_encoded(catalog, ROOT, TOP, Paging(token=page["next-page-token"], size=1))
    )

    assert (page["namespaces"], rest) == ([["ns"]], {"namespaces": [["other"]]})


def test_the_least_recently_used_lists_make_room() -> None:
    recent = RecentLists(max_bytes=2_500)
    whole = WholeList(ObjId(1), 1, b"x" * 600)
    for prefix in (b"a", b"b"):
        recent.remember(key(prefix), whole)

    recent.get(key(b"a"), ObjId(1))
    recent.remember(key(b"c"), whole)

    found = [prefix for prefix in (b"a", b"b", b"c") if recent.get(key(prefix), ObjId(1))]
    assert found == [b"a", b"c"]


def test_a_newer_list_replaces_an_older_one_and_another_commit_finds_none() -> None:
    recent = RecentLists()
    recent.remember(key(b"a"), WholeList(ObjId(1), 1, b"old"))

    recent.remember(key(b"a"), WholeList(ObjId(2), 2, b"new"))

    assert recent.get(key(b"a"), ObjId(1)) is None
    assert recent.get(key(b"a", "other"), ObjId(2)) is None
    assert recent.get(key(b"a"), ObjId(2)) == WholeList(ObjId(2), 2, b"new")


def test_a_list_that_would_drive_out_the_others_is_not_kept() -> None:
    recent = RecentLists(max_bytes=3_000)
    recent.remember(key(b"a"), WholeList(ObjId(1), 1, b"small"))

    recent.remember(key(b"b"), WholeList(ObjId(1), 1, b"x" * 1_000))

    assert recent.get(key(b"b"), ObjId(1)) is None
    assert recent.get(key(b"a"), ObjId(1)) is not None
