import pytest

from cynosure.cli.sql_repl.using import apply_use
from cynosure.client.query import QuerySession


@pytest.mark.parametrize(
    ("statement", "catalog", "namespace"),
    [
        ("USE other.a.b", "other", ("a", "b")),
        ("use  `o.dd` . `n``s`", "o.dd", ("n`s",)),
        ("USE a", "lake", ("a",)),
        ("USE CATALOG other", "other", ()),
        ("USE NAMESPACE a.b", "lake", ("a", "b")),
        ("use database a", "lake", ("a",)),
    ],
)
def test_use_changes_what_names_are_relative_to(
    statement: str, catalog: str, namespace: tuple[str, ...]
) -> None:
    used = apply_use(statement, QuerySession("lake", ("x",), timeout="5s"))

    assert used is not None
    assert (used.catalog, used.namespace, used.timeout) == (catalog, namespace, "5s")


def test_without_a_catalog_the_first_name_is_one() -> None:
    assert apply_use("USE a", QuerySession()) == QuerySession("a")


@pytest.mark.parametrize("statement", ["SELECT 1", "USE", "USE a b", "USED a", "USE a; SELECT 1"])
def test_everything_else_is_left_to_the_gateway(statement: str) -> None:
    assert apply_use(statement, QuerySession()) is None
