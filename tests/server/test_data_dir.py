import os
import stat
from pathlib import Path

import pytest

from cynosure.common.errors import Misconfigured
from cynosure.server.data_dir import RoleLock, prepare_data_dir


def test_a_missing_directory_is_made_private_and_an_existing_one_is_kept(tmp_path: Path) -> None:
    prepare_data_dir(tmp_path / "a" / "b")
    (tmp_path / "a" / "b" / "other").write_text("kept")
    prepare_data_dir(tmp_path / "a" / "b")

    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert (tmp_path / "a" / "b" / "other").read_text() == "kept"


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(Misconfigured, match="cannot be made"):
        prepare_data_dir(tmp_path / "data")


def test_one_holder_per_role_and_the_refusal_names_it(tmp_path: Path) -> None:
    with RoleLock(tmp_path, "catalog"), RoleLock(tmp_path, "up"):
        assert RoleLock(tmp_path, "catalog").find_holder() == os.getpid()
        with pytest.raises(Misconfigured) as caught:
            RoleLock(tmp_path, "catalog").acquire()

    assert caught.value.details["pid"] == os.getpid()
    assert RoleLock(tmp_path, "catalog").find_holder() is None
