"""Where catalogs keep files of this machine."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.server.catalog_storage import (
    default_location,
    directory_name,
    file_roots,
)
from cynosure.server.settings import Settings, load_settings
from cynosure.storage.location import Location
from cynosure.storage.resolve import resolve_location


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
