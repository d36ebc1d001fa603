"""The content of the types that Apache Polaris has."""

import pytest

from cynosure.catalog.errors import InvalidPolicy
from cynosure.catalog.policies.system_types import SYSTEM_TYPES

TYPES = {each.name: each for each in SYSTEM_TYPES}
ORPHANS = "system.orphan-file-removal"
GOOD = [
    '{"enable":true}',
    '{"enable":false,"version":"2025-02-03"}',
    '{"enable":true,"config":{}}',
    '{"enable":true,"config":{"target_file_size_bytes":134217728,"strategy":"bin-pack","x":1.5,"y":true}}',
]
BAD = [
    ("", "content"),
    ("null", "content"),
    ("[]", "content"),
    ("{", "content"),
    ('{"enable":true} x', "content"),
    ("[" * 100_000, "content"),
    ("{}", "content.enable"),
    ('{"enable":null}', "content.enable"),
    ('{"enable":"true"}', "content.enable"),
    ('{"enable":1}', "content.enable"),
    ('{"enable":true,"version":"2024-01-01"}', "content.version"),
    ('{"enable":true,"version":null}', "content.version"),
    ('{"enable":true,"versions":"2025-02-03"}', "content.versions"),
    ('{"enable":true,"config":[]}', "content.config"),
    ('{"enable":true,"config":{"a":{}}}', "content.config[...]"),
    ('{"enable":true,"config":{"a":null}}', "content.config[...]"),
]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("content", GOOD)
def test_what_a_type_takes(name: str, content: str) -> None:
    TYPES[name].parse(content)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(("content", "field"), BAD)
def test_other_content_is_refused_by_the_name_of_its_field(name: str, content: str, field: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        TYPES[name].parse(content)

    assert refused.value.field == field


@pytest.mark.parametrize("more", ['"max_orphan_file_age_in_days":30', '"locations":["s3://a/b"]'])
def test_only_the_removal_of_orphan_files_has_an_age_and_locations(more: str) -> None:
    content = f'{{"enable":true,{more}}}'

    TYPES[ORPHANS].parse(content)
    for name in TYPES.keys() - {ORPHANS}:
        with pytest.raises(InvalidPolicy):
            TYPES[name].parse(content)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ('"max_orphan_file_age_in_days":"30"', "content.max_orphan_file_age_in_days"),
        ('"max_orphan_file_age_in_days":-1', "content.max_orphan_file_age_in_days"),
        ('"max_orphan_file_age_in_days":-0.5', "content.max_orphan_file_age_in_days"),
        ('"locations":"s3://a/b"', "content.locations"),
        ('"locations":[1]', "content.locations[0]"),
    ],
)
def test_the_removal_of_orphan_files_checks_them(more: str, field: str) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        TYPES[ORPHANS].parse(f'{{"enable":true,{more}}}')

    assert refused.value.field == field


def test_all_of_them_are_inherited_and_restrict_nothing() -> None:
    assert len(TYPES) == 4
    assert all(each.is_inheritable and not each.is_restriction for each in SYSTEM_TYPES)
