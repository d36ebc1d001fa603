"""Only the pinned jars are ever loaded."""

from pathlib import Path

import pytest

from cynosure.spark.jars import PINNED
from tests.engines.java import ToolFailed
from tests.engines.spark.jars import find_jars


def test_a_jar_with_other_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CYNOSURE_SPARK_JARS", str(tmp_path))
    for name in PINNED:
        (tmp_path / name).write_bytes(b"something else")

    with pytest.raises(ToolFailed, match="not the one that was tested"):
        find_jars()


def test_a_folder_without_the_jars_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CYNOSURE_SPARK_JARS", str(tmp_path))

    with pytest.raises(ToolFailed, match="Put it there"):
        find_jars()
