"""Makes the sample packages in this folder as discoverable as if they were installed."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent

Install = Callable[[Path], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Does for this test what an installer does with a project folder: metadata and code on the path."""

    def install(project_folder: Path) -> None:
        project = tomllib.loads((project_folder / "pyproject.toml").read_text())["project"]
        name, version = project["name"], project["version"]
        metadata = tmp_path / "site" / f"{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (metadata / "entry_points.txt").write_text(
            "".join(
                f"[{group}]\n" + "".join(f"{entry} = {value}\n" for entry, value in entries.items())
                for group, entries in project["entry-points"].items()
            )
        )
        monkeypatch.syspath_prepend(metadata.parent)
        monkeypatch.syspath_prepend(project_folder / "src")

    return install


@pytest.fixture
def tally_installed(install: Install) -> None:
    install(SAMPLES / "tally")
