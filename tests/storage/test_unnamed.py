"""What lies in a place and has no name goes when it is asked for, and nothing beside it."""

from pathlib import Path

import pytest

from cynosure.common.clock import SystemClock
from cynosure.storage.backends.local import LocalFileIO
from cynosure.storage.backends.memory import MemoryFileIO
from cynosure.storage.decorators import decorate
from cynosure.storage.decorators.confined import ConfinedFileIO
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.storage.unnamed import Removed, find_unnamed

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Location:
    (tmp_path / "t" / "data" / "empty").mkdir(parents=True)
    (tmp_path / "t" / "data" / "file").write_bytes(b"1")
    (tmp_path / "t" / "data" / "odd?").write_bytes(b"22")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "odd?").write_bytes(b"333")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "other")
    return Location.parse(f"file://{tmp_path}")


def list_names(root: Location) -> set[str]:
    base = Path("/" + "/".join(root.segments))
    return {str(each.relative_to(base)) for each in base.rglob("*")}


async def test_links_and_odd_names_go_and_are_not_followed(root: Location) -> None:
    removed = await LocalFileIO([root]).delete_unnamed(root.child("t"), with_markers=False)

    assert list_names(root) == {"t", "t/data", "t/data/empty", "t/data/file", "other", "other/odd?"}
    assert removed.files == 2


async def test_empty_directories_go_when_asked_for(root: Location) -> None:
    files = LocalFileIO([root])
    await files.delete(root.child("t", "data", "file"))

    await files.delete_unnamed(root.child("t"), with_markers=True)

    assert list_names(root) == {"other", "other/odd?"}


async def test_a_root_stays(root: Location) -> None:
    place = root.child("t")
    files = LocalFileIO([place])
    await files.delete(place.child("data", "file"))

    await files.delete_unnamed(place, with_markers=True)

    assert list_names(root) == {"t", "other", "other/odd?"}


async def test_nothing_happens_where_there_is_no_such_place(root: Location) -> None:
    assert await LocalFileIO([root]).delete_unnamed(root.child("u"), with_markers=True) == Removed()


async def test_what_is_outside_is_refused(root: Location) -> None:
    inner = LocalFileIO([root.child("t")])
    confined = find_unnamed(ConfinedFileIO(LocalFileIO([root]), [root.child("t")]))
    assert confined is not None
    before = list_names(root)

    for files in (inner, confined):
        with pytest.raises(StorageRefused):
            await files.delete_unnamed(root.child("other"), with_markers=True)

    assert list_names(root) == before


def test_it_is_found_inside_all_decorators(root: Location) -> None:
    local = LocalFileIO([root])
    settings = StorageSettings(log_files=True)
    memory = MemoryFileIO([root], SystemClock())

    assert find_unnamed(decorate(local, "file", settings, SystemClock())) is local
    assert find_unnamed(decorate(memory, "file", settings, SystemClock())) is None
