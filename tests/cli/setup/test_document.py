"""What a setup file may say, and that nothing in it is silently left out."""

from pathlib import Path

import pytest

from cynosure.cli.setup.document import Document, load_document
from cynosure.client.management_types import make_grant
from cynosure.common.errors import BadInput


def read(tmp_path: Path, text: str) -> Document:
    path = tmp_path / "setup.yaml"
    path.write_text(text)
    return load_document(path)


def test_all_forms_of_names_and_grants_are_understood(tmp_path: Path) -> None:
    document = read(
        tmp_path,
        """
principals:
  alice: {type: SERVICE, properties: {team: eu}, roles: [analysts]}
  bob: {}
principal_roles: [analysts, {name: engineers, properties: {a: b}}]
catalogs:
  - name: lake
    type: INTERNAL
    storage_type: s3
    default_base_location: s3://bucket/lake
    path_style_access: true
    namespaces: [a.b, [dotted.name, c], {name: a, properties: {k: v}, location: s3://bucket/lake/a}]
    roles:
      reader:
        assign_to: [analysts]
        privileges:
          catalog: [CATALOG_READ_PROPERTIES]
          namespace: {a.b: [TABLE_READ_DATA]}
      writer:
        privileges:
          namespace: [{namespace: [dotted.name], privileges: [TABLE_WRITE_DATA]}]
          table: [{namespace: a.b, name: t, privileges: [TABLE_DROP, TABLE_LIST]}]
""",
    )

    [lake] = document.catalogs
    assert sorted(document.role_parts()) == ["analysts", "engineers"]
    assert lake.storage_options() == {"pathStyleAccess": True}
    assert list(lake.namespace_parts().items()) == [
        (("a",), {"k": "v", "location": "s3://bucket/lake/a"}),
        (("a", "b"), {}),
        (("dotted.name",), {}),
        (("dotted.name", "c"), {}),
    ]
    assert lake.roles["reader"].privileges.grants() == [
        make_grant("catalog", "CATALOG_READ_PROPERTIES"),
        make_grant("namespace", "TABLE_READ_DATA", ("a", "b")),
    ]
    assert lake.roles["writer"].privileges.grants() == [
        make_grant("namespace", "TABLE_WRITE_DATA", ("dotted.name",)),
        make_grant("table", "TABLE_DROP", ("a", "b"), "t"),
        make_grant("table", "TABLE_LIST", ("a", "b"), "t"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("principal: {}", "principal"),
        ("principals: {alice: {role: [x]}}", "role"),
        ("catalogs: [{default_base_location: s3://x}]", "name"),
        ("catalogs: [{name: a}, {name: a}]", "$.catalogs"),
        ("catalogs: [{name: a, type: neither}]", "$.catalogs[0].type"),
        ("catalogs: [{name: a, policies: [{name: p}]}]", "policies"),
        ("catalogs: [{name: a, secret_access_key: x}]", "secret_access_key"),
        ("catalogs: [{name: a, default_base_location: s3://b/p, tenant_id: t}]", "S3 has no tenant_id"),
        ("catalogs: [{name: a, default_base_location: ./p, region: r}]", "FILE has no region"),
        ("catalogs: [{name: a, storage_type: gcs, client_secret_env: E}]", "GCS has no client_secret"),
        ("catalogs: [{name: a, namespaces: [[]]}]", "$.catalogs[0].namespaces"),
        ("catalogs: [{name: a, namespaces: [7]}]", "$.catalogs[0].namespaces"),
        ("catalogs: [{name: a, roles: {r: {privileges: {catalogs: []}}}}]", "catalogs"),
        ("[]", "object"),
        ("a: [", "YAML"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(tmp_path, text)

    assert place in str(caught.value)


def test_an_empty_file_says_nothing_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    assert read(tmp_path, "") == Document()
    with pytest.raises(BadInput, match="cannot be read"):
        load_document(tmp_path / "none.yaml")
