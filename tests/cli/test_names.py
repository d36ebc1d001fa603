import pytest

from cynosure.cli.access import parse_target
from cynosure.cli.names import change_properties, parse_properties, split_name
from cynosure.common.errors import BadInput


def test_names_are_split_at_dots_or_at_what_is_asked_for() -> None:
    assert split_name("a.b.c") == ("a", "b", "c")
    assert split_name("a.b/c", "/") == ("a.b", "c")


@pytest.mark.parametrize(("text", "separator"), [("", "."), ("a..b", "."), (".a", "."), ("a", "")])
def test_empty_levels_are_refused(text: str, separator: str) -> None:
    with pytest.raises(BadInput):
        split_name(text, separator)


def test_properties_are_set_and_removed_and_others_stay() -> None:
    changed = change_properties({"a": "1", "b": "2"}, ["b=3=4", "c="], ["a", "none"])

    assert changed == {"b": "3=4", "c": ""}
    with pytest.raises(BadInput):
        parse_properties(["novalue"])


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("realm", "", {}),
        ("catalog", "sales", {"catalog": "sales"}),
        ("principal", "alice", {"principal": "alice"}),
        ("principal-role", "analysts", {"principalRole": "analysts"}),
        ("catalog-role", "sales/reader", {"catalog": "sales", "catalogRole": "reader"}),
        ("namespace", "sales", {"catalog": "sales", "namespace": ()}),
        ("namespace", "sales/eu.orders", {"catalog": "sales", "namespace": ("eu", "orders")}),
        ("table", "sales/eu.orders", {"catalog": "sales", "namespace": ("eu",), "table": "orders"}),
        ("view", "sales/a.b.v", {"catalog": "sales", "namespace": ("a", "b"), "view": "v"}),
    ],
)
def test_the_operation_says_what_a_target_is(kind: str, text: str, expected: dict[str, object]) -> None:
    assert parse_target(kind, text) == expected


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("realm", "x"),
        ("catalog", ""),
        ("catalog-role", "sales"),
        ("table", "sales/orders"),
        ("table", "sales"),
    ],
)
def test_targets_that_name_too_little_or_too_much_are_refused(kind: str, text: str) -> None:
    with pytest.raises(BadInput):
        parse_target(kind, text)
