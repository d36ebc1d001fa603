from pathlib import Path

import pytest

from cynosure.persistence.installed import list_offers


def test_what_is_installed_is_looked_for_once_and_again_when_python_imports_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "sample-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[cynosure.backends]\nsample = sample:open_backend\n")
    before = list_offers("cynosure.backends")
    again = list_offers("cynosure.backends")

    monkeypatch.syspath_prepend(tmp_path)
    with_sample = list_offers("cynosure.backends")

    assert again is before
    assert {entry.name for entry in before} >= {"memory", "sqlite", "postgresql"}
    assert {entry.name for entry in with_sample} - {entry.name for entry in before} == {"sample"}
