"""The kit on local files, and what only a file system can do to us."""

import asyncio
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.common.errors import AlreadyExists
from cynosure.storage.backends.local import LocalFileIO
from cynosure.storage.errors import FileMissing, StorageRefused, StorageUnavailable
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import FileIOKit, Place, collect
from cynosure.testing.harness.held import list_descriptors

pytestmark = pytest.mark.anyio


class TestLocalFileIO(FileIOKit):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        base = Location.parse(f"file://{tmp_path}/allowed")
        return Place(base, lambda: LocalFileIO([base]))


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    (tmp_path / "allowed").mkdir()
    return tmp_path / "allowed"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    return tmp_path / "outside"


@pytest.fixture
def base(allowed: Path) -> Location:
    return Location.parse(str(allowed))


@pytest.fixture
def fileio(base: Location) -> LocalFileIO:
    return LocalFileIO([base])


# --- symbolic links ------------------------------------------------------------------------------------


async def refuse_everything(fileio: LocalFileIO, location: Location) -> None:
    with pytest.raises(StorageRefused):
        await fileio.read(location)
    with pytest.raises(StorageRefused):
        await fileio.write(location, b"x")
    with pytest.raises(StorageRefused):
        await fileio.write(location, b"x", overwrite=True)
    with pytest.raises(StorageRefused):
        await fileio.delete(location)
    with pytest.raises(StorageRefused):
        await fileio.exists(location)


async def test_a_directory_link_that_leads_outside_is_not_followed(
    fileio: LocalFileIO, base: Location, allowed: Path, outside: Path
):
    (allowed / "link").symlink_to(outside)

    await refuse_everything(fileio, base.child("link", "secret"))
    with pytest.raises(StorageRefused):
        await collect(fileio, base.child("link"))

    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


async def test_no_directory_is_made_behind_a_link_that_leads_outside(
    fileio: LocalFileIO, base: Location, allowed: Path, outside: Path
):
    (allowed / "link").symlink_to(outside)

    with pytest.raises(StorageRefused):
        await fileio.write(base.child("link", "new", "deep", "file"), b"x")

    assert [path.name for path in outside.iterdir()] == ["secret"]


async def test_a_link_to_a_directory_with_a_longer_name_of_the_same_beginning_leads_outside(
    fileio: LocalFileIO, base: Location, allowed: Path
):
    sibling = allowed.parent / "allowed2"
    sibling.mkdir()
    (allowed / "link").symlink_to(sibling)

    with pytest.raises(StorageRefused):
        await fileio.write(base.child("link", "file"), b"x")

    assert list(sibling.iterdir()) == []


async def test_a_file_that_is_a_link_is_neither_read_nor_written_through(
    fileio: LocalFileIO, base: Location, allowed: Path, outside: Path
):
    (allowed / "link").symlink_to(outside / "secret")
    (allowed / "dangling").symlink_to(outside / "new")

    with pytest.raises(StorageRefused):
        await fileio.read(base.child("link"))
    for name in ("link", "dangling"):
        assert not await fileio.exists(base.child(name))
        with pytest.raises(AlreadyExists):
            await fileio.write(base.child(name), b"secret")
    assert await collect(fileio, base) == []

    await fileio.delete(base.child("link"))
    await fileio.write(base.child("dangling"), b"mine", overwrite=True)
    assert (outside / "secret").read_bytes() == b"secret"
    assert not (outside / "new").exists()
    assert await fileio.read(base.child("dangling")) == b"mine"


async def test_directory_links_that_stay_inside_and_a_linked_root_work(tmp_path: Path):
    (tmp_path / "disk" / "real").mkdir(parents=True)
    (tmp_path / "disk" / "link").symlink_to("real")
    (tmp_path / "warehouse").symlink_to("disk")
    base = Location.parse(f"{tmp_path}/warehouse")
    fileio = LocalFileIO([base])

    await fileio.write(base.child("link", "file"), b"x")

    assert (tmp_path / "disk" / "real" / "file").read_bytes() == b"x"
    assert await fileio.read(base.child("link", "file")) == b"x"


async def test_a_root_that_is_pointed_elsewhere_is_followed(tmp_path: Path):
    for disk in ("disk1", "disk2"):
        (tmp_path / disk).mkdir()
    (tmp_path / "warehouse").symlink_to("disk1")
    base = Location.parse(f"{tmp_path}/warehouse")
    fileio = LocalFileIO([base])
    await fileio.write(base.child("file"), b"1")
    (tmp_path / "warehouse").unlink()
    (tmp_path / "warehouse").symlink_to("disk2")

    await fileio.write(base.child("file"), b"2")

    assert [(tmp_path / disk / "file").read_bytes() for disk in ("disk1", "disk2")] == [b"1", b"2"]


SWAP = """
import os
print("ready", flush=True)
while True:
    for old, new in (("a", "b"), ("evil", "a"), ("a", "evil"), ("b", "a")):
        os.rename(old, new)
"""


@pytest.fixture
def swapping(allowed: Path, outside: Path) -> Iterator[None]:
    """Another process exchanges a directory and a link to the outside as fast as it can."""
    (allowed / "a").mkdir()
    (allowed / "evil").symlink_to(outside)
    swapper = subprocess.Popen([sys.executable, "-c", SWAP], cwd=allowed, stdout=subprocess.PIPE)
    assert swapper.stdout is not None
    swapper.stdout.readline()
    yield
    swapper.kill()
    swapper.communicate()


@pytest.mark.usefixtures("swapping")
async def test_a_directory_exchanged_for_a_link_while_files_are_written_leaks_none(
    fileio: LocalFileIO, base: Location, outside: Path
):
    writes = (fileio.write(base.child("a", f"{number}"), b"x") for number in range(1_000))

    outcomes = await asyncio.gather(*writes, return_exceptions=True)

    assert {type(outcome) for outcome in outcomes} <= {type(None), StorageRefused, StorageUnavailable}
    assert [path.name for path in outside.iterdir()] == ["secret"]


# --- what lies in the way -------------------------------------------------------------------------------


async def test_a_named_pipe_is_no_file_and_nobody_waits_for_it(
    fileio: LocalFileIO, base: Location, allowed: Path
):
    os.mkfifo(allowed / "pipe")

    with pytest.raises(FileMissing):
        await fileio.read(base.child("pipe"))
    with pytest.raises(AlreadyExists):
        await fileio.write(base.child("pipe"), b"x")
    assert await collect(fileio, base) == []


async def test_a_file_where_a_directory_should_be_is_a_refusal(fileio: LocalFileIO, base: Location):
    await fileio.write(base.child("file"), b"x")

    with pytest.raises(StorageRefused):
        await fileio.write(base.child("file", "below"), b"x")
    with pytest.raises(FileMissing):
        await fileio.read(base.child("file", "below"))
    await fileio.delete(base.child("file", "below"))
    assert not await fileio.exists(base.child("file", "below"))


async def test_names_that_no_location_can_have_are_left_out_of_listings(
    fileio: LocalFileIO, base: Location, allowed: Path
):
    for name in (b"new\nline", b"back\\slash", b"question?", b"not utf-8 \xff"):
        (allowed / os.fsdecode(name)).write_bytes(b"x")
        (allowed / os.fsdecode(b"dir " + name)).mkdir()
        (allowed / os.fsdecode(b"dir " + name) / "file").write_bytes(b"x")
    (allowed / "good").write_bytes(b"x")

    assert [found.location for found in await collect(fileio, base)] == [base.child("good")]


def run(script: str, directory: Path) -> list[str]:
    """What a process of its own prints, because limits and accounts are a process's."""
    imports = """
import asyncio, concurrent.futures.thread, os, resource, signal, sys
from cynosure.common.errors import CynosureError
from cynosure.storage.backends.local import LocalFileIO
from cynosure.storage.location import Location
base = Location.parse(sys.argv[1])
fileio = LocalFileIO([base])
async def collect():
    return [found async for found in fileio.list(base)]
def show(call):
    try:
        asyncio.run(call)
    except CynosureError as error:
        print(type(error).__name__, error.details["reason"])
"""
    command = [sys.executable, "-c", imports + script, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_missing_rights_are_a_refusal_also_in_the_middle_of_a_listing():
    with tempfile.TemporaryDirectory() as name:  # not pytest's own, which no other account can enter
        Path(name).chmod(0o777)
        (Path(name) / "locked").mkdir(mode=0)

        shown = run(
            """
if os.geteuid() == 0:
    os.setuid(65534)
show(fileio.write(base.child("locked", "file"), b"x"))
show(fileio.read(base.child("locked", "file")))
show(collect())
""",
            Path(name),
        )

    assert shown == ["StorageRefused EACCES"] * 3


def test_a_full_disk_is_unavailability_and_leaves_no_half_file(tmp_path: Path):
    shown = run(
        """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
show(fileio.write(base.child("file"), b"x" * 9000))
show(fileio.write(base.child("file"), b"x" * 9000, overwrite=True))
""",
        tmp_path,
    )

    assert shown == ["StorageUnavailable EFBIG"] * 2
    assert list(tmp_path.iterdir()) == []


async def test_a_directory_removed_between_two_writes_is_made_again(
    fileio: LocalFileIO, base: Location, allowed: Path
):
    await fileio.write(base.child("d", "e", "file"), b"x")
    (allowed / "d" / "e" / "file").unlink()
    (allowed / "d" / "e").rmdir()
    (allowed / "d").rmdir()

    await fileio.write(base.child("d", "e", "file"), b"y")

    assert (allowed / "d" / "e" / "file").read_bytes() == b"y"


async def test_empty_directories_stay_and_files_have_ordinary_modes(
    fileio: LocalFileIO, base: Location, allowed: Path
):
    await fileio.write(base.child("d", "file"), b"x")
    mode = stat.S_IMODE((allowed / "d" / "file").stat().st_mode)
    await fileio.delete(base.child("d", "file"))

    umask = os.umask(0)
    os.umask(umask)
    assert mode == 0o666 & ~umask
    assert (allowed / "d").is_dir()


async def test_no_file_descriptor_is_left_open(
    fileio: LocalFileIO, base: Location, allowed: Path, outside: Path
):
    (allowed / "link").symlink_to(outside)
    await fileio.write(base.child("warm"), b"x", overwrite=True)
    before = list_descriptors()

    await fileio.write(base.child("d", "e", "file"), b"x")
    with pytest.raises(AlreadyExists):
        await fileio.write(base.child("d", "e", "file"), b"y")
    await refuse_everything(fileio, base.child("link", "secret"))
    await fileio.read(base.child("d", "e", "file"))
    await collect(fileio, base)
    with pytest.raises(FileMissing):
        await fileio.read(base.child("none"))
    await fileio.delete_many([base.child("d", "e", "file"), base.child("none", "file")])

    assert not list_descriptors() - before
