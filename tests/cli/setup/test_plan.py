"""The steps between what there is and what a file says."""

import msgspec
import pytest

from cynosure.cli.setup.apply import preview
from cynosure.cli.setup.document import Document
from cynosure.cli.setup.plan import Present, PresentCatalog, make_plan
from cynosure.client.management_types import Catalog, CatalogRole, Principal, PrincipalRole, make_grant


def document(**parts: object) -> Document:
    return msgspec.convert(parts, type=Document)


LAKE = {
    "name": "lake",
    "default_base_location": "s3://b/lake",
    "allowed_locations": ["s3://c/lake/"],
    "region": "eu-west-1",
    "properties": {"owner": "me"},
    "namespaces": ["a.b"],
    "roles": {
        "catalog_admin": {"assign_to": ["analysts"]},
        "reader": {"assign_to": ["analysts"], "privileges": {"namespace": {"a.b": ["TABLE_READ_DATA"]}}},
    },
}
WHOLE = document(principals={"alice": {"roles": ["analysts"]}}, principal_roles=["analysts"], catalogs=[LAKE])


def present_lake(**changes: object) -> PresentCatalog:
    catalog = Catalog(
        name="lake",
        properties={"default-base-location": "s3://b/lake/", "owner": "me"},
        storage_config_info={
            "storageType": "S3",
            "region": "eu-west-1",
            "allowedLocations": ["s3://b/lake", "s3://c/lake"],
        },
    )
    found = PresentCatalog(
        catalog,
        roles={"catalog_admin": CatalogRole("catalog_admin"), "reader": CatalogRole("reader")},
        assignees={"catalog_admin": frozenset({"analysts"}), "reader": frozenset({"analysts", "others"})},
        grants={"reader": frozenset({make_grant("namespace", "TABLE_READ_DATA", ("a", "b"))})},
        namespaces={("a",): {}, ("a", "b"): {"more": "x"}},
    )
    return msgspec.structs.replace(found, **changes)


def everything(lake: PresentCatalog | None = None) -> Present:
    return Present(
        principals={"alice": Principal("alice")},
        roles={"analysts": PrincipalRole("analysts")},
        roles_of={"alice": frozenset({"analysts"})},
        catalogs={"lake": lake or present_lake()},
    )


def test_from_nothing_each_step_comes_after_what_it_needs() -> None:
    steps = make_plan(WHOLE, Present(), {})

    assert [(each.action, each.text) for each in steps] == [
        ("create", "principal role analysts"),
        ("create", "principal alice"),
        ("assign", "principal role analysts to principal alice"),
        ("create", "catalog lake at s3://b/lake"),
        ("create", "namespace a of lake"),
        ("create", "namespace a.b of lake"),
        ("assign", "catalog role catalog_admin of lake to principal role analysts"),
        ("create", "catalog role reader of lake"),
        ("assign", "catalog role reader of lake to principal role analysts"),
        ("grant", "TABLE_READ_DATA on namespace a.b to catalog role reader of lake"),
    ]
    made = set()
    for step in steps:
        assert all(need in made for need in step.needs if need[-1] != "catalog_admin"), step
        made.add(step.key)


def test_where_everything_is_there_is_nothing_to_do() -> None:
    assert make_plan(WHOLE, everything(), {}) == []


def test_only_what_differs_is_changed_and_nothing_is_taken_away() -> None:
    wanted = document(
        principals={"alice": {"properties": {"team": "eu"}}},
        catalogs=[
            {
                "name": "lake",
                "region": "us-east-1",
                "allowed_locations": ["s3://c/lake", "s3://d"],
                "properties": {"owner": "you"},
                "namespaces": [{"name": "a", "properties": {"k": "v"}}],
            }
        ],
    )

    steps = make_plan(wanted, everything(), {})

    assert [each.text for each in steps] == [
        "principal alice: team",
        "catalog lake: owner, region, allowedLocations",
        "namespace a of lake: k",
    ]
    _, properties, storage, _ = steps[1].payload
    assert properties == {"owner": "you"}
    assert storage == {"region": "us-east-1", "allowedLocations": ["s3://b/lake", "s3://c/lake", "s3://d"]}


@pytest.mark.parametrize(
    ("catalog", "words"),
    [
        ({"name": "lake", "default_base_location": "s3://elsewhere"}, "its location is s3://b/lake/"),
        ({"name": "lake", "storage_type": "file"}, "its storage is S3"),
        ({"name": "lake", "type": "external"}, "it is internal, not external"),
        ({"name": "lake", "roles": {"reader": {"assign_to": ["nobody"]}}}, "there is no such principal role"),
    ],
)
def test_what_a_setup_cannot_do_is_said_and_counts_as_failed(catalog: dict[str, object], words: str) -> None:
    [outcome] = preview(make_plan(document(catalogs=[catalog]), everything(), {}))

    assert outcome.result == "failed"
    assert words in outcome.text


def test_a_path_and_its_url_are_one_place() -> None:
    lake = present_lake(
        catalog=Catalog(
            name="lake",
            properties={"default-base-location": "file:///d/lake"},
            storage_config_info={"storageType": "FILE", "allowedLocations": ["file:///d/lake"]},
        )
    )
    wanted = document(catalogs=[{"name": "lake", "default_base_location": "/d/lake/"}])

    assert make_plan(wanted, everything(lake), {}) == []
