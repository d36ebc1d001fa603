"""The language of Google's boundaries: what a name can and cannot do in it."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.storage.access.gcs.boundary import make_boundary, quote_cel
from cynosure.storage.access.ports import Scope
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location


def scope(*texts: str, is_writable: bool = False) -> Scope:
    return Scope(tuple(Location.parse(text) for text in texts), is_writable)


def rules(of: Scope) -> list[dict[str, object]]:
    found = json.loads(make_boundary(of))
    assert set(found) == {"accessBoundary"}
    return found["accessBoundary"]["accessBoundaryRules"]


LIST_BELOW = "api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith"


def test_reading_is_objects_and_listings_below_the_prefix_and_nothing_beside_it():
    assert rules(scope("gs://bkt/db/orders")) == [
        {
            "availableResource": "//storage.googleapis.com/projects/_/buckets/bkt",
            "availablePermissions": ["inRole:roles/storage.objectViewer"],
            "availabilityCondition": {
                "expression": "resource.name.startsWith('projects/_/buckets/bkt/objects/db/orders/')"
                f" || {LIST_BELOW}('db/orders/')"
            },
        }
    ]


def test_writing_adds_a_rule_for_objects_only():
    reading, writing = rules(scope("gs://bkt/db/orders", is_writable=True))

    assert reading == rules(scope("gs://bkt/db/orders"))[0]
    assert writing == {
        "availableResource": "//storage.googleapis.com/projects/_/buckets/bkt",
        "availablePermissions": ["inRole:roles/storage.legacyBucketWriter"],
        "availabilityCondition": {
            "expression": "resource.name.startsWith('projects/_/buckets/bkt/objects/db/orders/')"
        },
    }


def test_a_whole_bucket_is_bounded_by_its_resource():
    [rule] = rules(scope("gs://bkt"))

    assert rule["availableResource"] == "//storage.googleapis.com/projects/_/buckets/bkt"
    assert rule["availabilityCondition"] == {
        "expression": f"resource.name.startsWith('projects/_/buckets/bkt/objects/') || {LIST_BELOW}('')"
    }


def test_locations_of_one_bucket_share_a_rule_and_buckets_do_not():
    first, second = rules(scope("gs://bkt/a", "gs://other/b", "gs://bkt/c"))

    assert first["availableResource"] != second["availableResource"]
    assert str(first).count("startsWith") == 4
    assert "other" not in str(first)
    assert "bkt" not in str(second)


def test_more_buckets_than_google_takes_are_refused():
    most = scope(*(f"gs://bkt{number}/x" for number in range(5)), is_writable=True)
    more = scope(*(f"gs://bkt{number}/x" for number in range(6)), is_writable=True)

    assert len(rules(most)) == 10
    with pytest.raises(StorageRefused):
        make_boundary(more)
    with pytest.raises(StorageRefused):
        make_boundary(Scope((), is_writable=False))


@pytest.mark.parametrize(
    ("name", "literal"),
    [
        ("orders", "'orders'"),
        ("a b_c-d.e=f/g", "'a b_c-d.e=f/g'"),
        ("'", r"'\u0027'"),
        ('"', r"'\u0022'"),
        ("`", r"'\u0060'"),
        ("\\", r"'\u005c'"),
        ("\n\r\t", r"'\u000a\u000d\u0009'"),
        ("%27", r"'\u002527'"),
        ("+", r"'\u002b'"),
        ("é", r"'\u00e9'"),
        ("🧊", r"'\U0001f9ca'"),
        ("x') || true || ('", r"'x\u0027\u0029 \u007c\u007c true \u007c\u007c \u0028\u0027'"),
    ],
)
def test_names_become_literals(name: str, literal: str):
    assert quote_cel(name) == literal


def read_cel(literal: str) -> str:
    """What a reader of CEL makes of a literal in single quotes; fails where it would end early."""
    body = re.fullmatch(r"'((?:[^'\\\n\r]|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*)'", literal)
    assert body is not None, literal
    return re.sub(
        r"\\u([0-9a-f]{4})|\\U([0-9a-f]{8})", lambda found: chr(int(found[1] or found[2], 16)), body[1]
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_a_literal_means_the_name_and_holds_no_character_that_any_layer_decodes(name: str):
    literal = quote_cel(name)

    assert read_cel(literal) == name
    assert re.fullmatch(r"'[A-Za-z0-9/_.= \\-]*'", literal)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_an_expression_has_as_many_conditions_as_its_scope_whatever_the_name(name: str):
    try:
        place = Location.parse("gs://bkt/db").child(name)
    except BadInput:  # a name that no location can have
        return
    [rule] = rules(Scope((place,), is_writable=False))
    expression = rule["availabilityCondition"]["expression"]

    literals = re.findall(r"startsWith\(('[^']*')\)", expression)
    assert [read_cel(each) for each in literals] == [
        f"projects/_/buckets/bkt/objects/db/{name}/",
        f"db/{name}/",
    ]
    assert expression.count("||") == 1
