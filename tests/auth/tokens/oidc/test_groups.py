import pytest

from cynosure.auth.settings import OidcSettings
from cynosure.auth.tokens.oidc.groups import RolesOfGroups, find_claim


def roles(claims, **settings):
    known = OidcSettings(issuer="https://i.example", audience=("a",), **settings)
    return RolesOfGroups("corp", known).list_roles(claims)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("lake-admin", "lake-reader", "staff")),
        ({"role_prefix": "lake-"}, ("admin", "reader")),
        ({"roles": {"staff": "everyone"}}, ("everyone",)),
        ({"roles": {"staff": "everyone"}, "role_prefix": "lake-"}, ("admin", "everyone", "reader")),
        ({"roles": {"lake-admin": "boss"}, "role_prefix": "lake-"}, ("boss", "reader")),
        ({"role_pattern": "lake-(.*)"}, ("admin", "reader")),
        ({"role_pattern": "lake-(r)(.*)", "role_replacement": r"\2_\1"}, ("eader_r",)),
        ({"role_pattern": "(lak)"}, ()),
        ({"role_prefix": "staff"}, ()),
    ],
)
def test_groups_become_roles_as_the_settings_say(settings, expected):
    assert roles({"groups": ["staff", "lake-reader", "lake-admin", "staff"]}, **settings) == expected


@pytest.mark.parametrize(
    ("claims", "path", "expected"),
    [
        ({"groups": "one"}, "groups", ("one",)),
        ({"groups": ["one", 7, None, {"x": 1}, ["two"]]}, "groups", ("one",)),
        ({"groups": {"one": 1}}, "groups", ()),
        ({"groups": None}, "groups", ()),
        ({}, "groups", ()),
        ({"realm_access": {"roles": ["one"]}}, "realm_access.roles", ("one",)),
        ({"https://corp.example/groups": ["one"]}, "https://corp.example/groups", ("one",)),
        ({"a": {"b": "x"}}, "a.b.c", ()),
    ],
)
def test_groups_are_found_by_name_or_path(claims, path, expected):
    assert roles(claims, groups_claim=path) == expected


def test_a_claim_of_the_whole_name_goes_before_a_path():
    assert find_claim({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
