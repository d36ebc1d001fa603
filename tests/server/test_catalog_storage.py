"""From what an operator wrote to a storage configuration."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.catalog.entities import CatalogEntity
from cynosure.common.errors import BadInput
from cynosure.server.catalog_storage import (
    S3Params,
    change_storage,
    choose_storage,
    default_location,
    directory_name,
    file_roots,
)
from cynosure.server.settings import Settings, load_settings
from cynosure.storage.config import FileStorage, S3Storage
from cynosure.storage.location import Location
from cynosure.storage.resolve import resolve_location

KEYS = S3Params(access_key_id="AK", secret_access_key="hunter2")


def settings_in(data: Path, **more: str) -> Settings:
    return load_settings(environment={}, overrides={"server.data_dir": str(data), **more})


@given(names=st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=6, unique=True))
def test_every_name_has_a_directory_of_its_own_that_a_location_can_have(names: list[str]) -> None:
    directories = [directory_name(name) for name in names]

    assert len(set(directories)) == len(names)
    for directory in directories:
        assert Location.parse(f"file:///w/{directory}").segments == ("w", directory)


def test_plain_names_are_their_own_directories() -> None:
    assert directory_name("sales_2026-v1.0") == "sales_2026-v1.0"
    assert directory_name("a/b").startswith("a_b-")
    assert not directory_name("..").startswith(".")


def test_the_default_location_is_below_the_roots(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "data", **{"storage.file_roots.more": str(tmp_path / "more")})

    roots = file_roots(settings)

    assert [root.text for root in roots] == [f"file://{tmp_path}/data/warehouse", f"file://{tmp_path}/more"]
    assert Location.parse(default_location(settings, "a/../b")).is_within(roots[0])


def test_links_are_resolved_so_that_one_place_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    (root, *_) = file_roots(settings_in(tmp_path / "link"))

    assert root.text == f"file://{tmp_path}/real/warehouse"
    assert resolve_location(f"{tmp_path}/link/x") == resolve_location(f"file:{tmp_path}/real/x")


def test_a_data_directory_that_no_location_can_name_has_no_warehouse(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "data#1")

    assert file_roots(settings) == []
    with pytest.raises(BadInput):
        default_location(settings, "lake")


def test_the_kind_of_storage_follows_from_the_location(tmp_path: Path) -> None:
    files = choose_storage(str(tmp_path), (), S3Params())
    s3 = choose_storage("s3a://b/p/", ("s3://c",), KEYS)

    assert files.config == FileStorage((f"file://{tmp_path}",))
    assert files.keys is None
    assert s3.config == S3Storage(allowed_locations=("s3a://b/p", "s3://c"))
    assert s3.keys is not None
    assert "hunter2" not in repr(s3) + repr(KEYS)


@pytest.mark.parametrize(
    ("location", "s3"),
    [
        ("/w", KEYS),
        ("/w", S3Params(region="eu-west-1")),
        ("s3://b", S3Params(access_key_id="AK")),
        ("s3://b", S3Params(secret_access_key="x")),
        ("relative/path", S3Params()),
        ("hdfs://h/p", S3Params()),
        ("s3://b/../c", KEYS),
        ("/w/../etc", S3Params()),
    ],
)
def test_what_does_not_go_together_is_refused(location: str, s3: S3Params) -> None:
    with pytest.raises(BadInput) as refused:
        choose_storage(location, (), s3)

    assert refused.value.fix
    assert "hunter2" not in str(refused.value)


def test_a_change_keeps_what_is_not_named() -> None:
    storage = S3Storage(
        allowed_locations=("s3://b/p",), endpoint="http://s3:9000", path_style_access=True, sealed_keys=b"x"
    )
    entity = CatalogEntity(
        id="1", name="c", base_location="s3://b/p", storage=storage, created_us=1, updated_us=1
    )

    same = change_storage(entity, "", (), S3Params())
    more = change_storage(entity, "s3://b/q", ("s3://d",), S3Params(endpoint="", region="eu-west-1"))

    assert (same.base, same.config, same.keys) == ("s3://b/p", storage, None)
    assert more.base == "s3://b/q"
    assert more.config == S3Storage(
        allowed_locations=("s3://b/p", "s3://d", "s3://b/q"),
        region="eu-west-1",
        path_style_access=True,
        sealed_keys=b"x",
    )
