"""What every storage must do: the promises of `cynosure.storage.fileio`, as tests.

A binding is a subclass with one fixture:

    class TestMyFileIO(FileIOKit):
        @pytest.fixture
        def place(self, tmp_path: Path) -> Place:
            base = Location.parse(f"file://{tmp_path}/allowed")
            return Place(base, lambda: MyFileIO([base]))

`open_handle` is called several times in a test; every call is another handle on the same files. `base` is
allowed, its parent is not, and it is empty before each test.

The kit needs the extra `testing` (pytest, anyio) and runs on asyncio: give it a fixture `anyio_backend` that
returns "asyncio". A maintainer must not break: no test names a storage, and none puts a file where another
needs a directory, because only object stores can have both.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import pytest

from cynosure.common.errors import AlreadyExists, BadInput, TooLarge
from cynosure.storage.errors import FileMissing, StorageRefused
from cynosure.storage.fileio import FileInfo, FileIO
from cynosure.storage.location import Location

RACERS = 8
ODD_NAMES = (
    "with space",
    "percent%20sequence",
    "%2Fencoded%2Fslash",
    "lonely%",
    "plus+and&equals=",
    "quote'and\"double",
    "star*brackets[]{}",
    "dollar${x}",
    "colon:at@tilde~",
    ".hidden",
    "trailing.",
    "...",
    "ünïcödé-日本-🧊",
    "lookalike\N{DIVISION SLASH}slash\N{FULLWIDTH SOLIDUS}",
    "e\N{COMBINING ACUTE ACCENT} beside \N{LATIN SMALL LETTER E WITH ACUTE}",
    "x" * 255,
)


class Place(NamedTuple):
    """What a binding supplies."""

    base: Location
    open_handle: Callable[[], FileIO]


@pytest.mark.anyio
class FileIOKit:
    """Tests that hold for all storages."""

    odd_names: ClassVar[Sequence[str]] = ODD_NAMES
    """Fewer where the locations of a storage cannot have them all."""
    page_files: ClassVar[int] = 1_000
    """Most files that the storage tells, or deletes, at once."""

    @pytest.fixture
    def place(self) -> Place:
        """The one thing that a binding supplies."""
        pytest.fail("A binding of the FileIO kit overrides the fixture place")

    @pytest.fixture
    def base(self, place: Place) -> Location:
        return place.base

    @pytest.fixture
    def fileio(self, place: Place) -> FileIO:
        return place.open_handle()

    @pytest.fixture
    def other(self, place: Place, fileio: FileIO) -> FileIO:
        """Another handle on the same files, as another process has one."""
        return place.open_handle()

    # --- writing and reading -----------------------------------------------------------------------

    @pytest.mark.parametrize("size", [0, 1, 10_000, 70_000, 6_000_000])
    async def test_what_was_written_is_read(
        self, fileio: FileIO, other: FileIO, base: Location, size: int
    ) -> None:
        data = bytes(number % 251 for number in range(min(size, 10_000))) * max(1, size // 10_000)

        await fileio.write(base.child("a", "b", "file"), data)

        assert await other.read(base.child("a", "b", "file")) == data

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_names_are_taken_literally(self, fileio: FileIO, base: Location, name: str) -> None:
        if name not in self.odd_names:
            with pytest.raises(BadInput):
                base.child(name)
            return
        location = base.child(name, name)

        await fileio.write(location, name.encode())

        assert await fileio.read(location) == name.encode()
        assert await fileio.exists(location)
        assert [found.location.segments for found in await collect(fileio, base)] == [location.segments]
        await fileio.delete(location)
        assert await collect(fileio, base) == []

    async def test_names_that_differ_in_encoding_or_case_only_are_different_files(
        self, fileio: FileIO, base: Location
    ) -> None:
        names = ["a b", "a%20b", "a+b", "A b", "a%2520b"]

        for name in names:
            await fileio.write(base.child(name), name.encode())

        assert [await fileio.read(base.child(name)) for name in names] == [name.encode() for name in names]

    async def test_reading_what_is_not_there_is_missing(self, fileio: FileIO, base: Location) -> None:
        await fileio.write(base.child("directory", "file"), b"x")

        for absent in (base.child("none"), base.child("none", "below"), base.child("directory")):
            with pytest.raises(FileMissing):
                await fileio.read(absent)
            assert not await fileio.exists(absent)

    async def test_a_file_beyond_the_limit_is_refused(self, fileio: FileIO, base: Location) -> None:
        await fileio.write(base.child("file"), b"12345")

        with pytest.raises(TooLarge):
            await fileio.read(base.child("file"), limit_bytes=4)

        assert await fileio.read(base.child("file"), limit_bytes=5) == b"12345"

    # --- create-only and overwrite -------------------------------------------------------------------

    async def test_creating_what_holds_something_else_fails_and_changes_nothing(
        self, fileio: FileIO, other: FileIO, base: Location
    ) -> None:
        await fileio.write(base.child("file"), b"first")

        for data in (b"other", b"longer than the first", b"", b"firstborn"):
            with pytest.raises(AlreadyExists):
                await other.write(base.child("file"), data)

        assert await fileio.read(base.child("file")) == b"first"

    async def test_creating_the_same_file_again_counts_as_written(
        self, fileio: FileIO, other: FileIO, base: Location
    ) -> None:
        await fileio.write(base.child("file"), b"same")

        await other.write(base.child("file"), b"same")

        assert await fileio.read(base.child("file")) == b"same"

    async def test_overwriting_replaces_and_creates(
        self, fileio: FileIO, other: FileIO, base: Location
    ) -> None:
        await fileio.write(base.child("d", "file"), b"a long first version")

        await other.write(base.child("d", "file"), b"short", overwrite=True)
        await other.write(base.child("e", "new"), b"new", overwrite=True)

        assert await fileio.read(base.child("d", "file")) == b"short"
        assert await fileio.read(base.child("e", "new")) == b"new"
        assert len(await collect(fileio, base)) == 2

    async def test_of_many_racing_creators_exactly_one_wins(
        self, fileio: FileIO, other: FileIO, base: Location
    ) -> None:
        contents = [f"by {number}".encode() for number in range(RACERS)]

        outcomes = await asyncio.gather(
            *(
                (other if number % 2 else fileio).write(base.child("d", "file"), data)
                for number, data in enumerate(contents)
            ),
            return_exceptions=True,
        )

        lost = [outcome for outcome in outcomes if outcome is not None]
        assert len(lost) == RACERS - 1
        assert all(isinstance(outcome, AlreadyExists) for outcome in lost), lost
        assert await fileio.read(base.child("d", "file")) == contents[outcomes.index(None)]

    # --- deleting ------------------------------------------------------------------------------------

    async def test_delete_removes_one_file_and_may_be_repeated(self, fileio: FileIO, base: Location) -> None:
        await fileio.write(base.child("d", "file"), b"x")
        await fileio.write(base.child("d", "file2"), b"y")

        for _ in range(2):
            await fileio.delete(base.child("d", "file"))
        await fileio.delete(base.child("never", "was"))

        assert [found.location for found in await collect(fileio, base)] == [base.child("d", "file2")]
        await fileio.write(base.child("d", "file"), b"again")

    async def test_deleting_a_directory_changes_nothing(self, fileio: FileIO, base: Location) -> None:
        await fileio.write(base.child("d", "file"), b"x")

        await fileio.delete(base.child("d"))

        assert await fileio.exists(base.child("d", "file"))

    async def test_many_are_deleted_whether_they_exist_or_not(self, fileio: FileIO, base: Location) -> None:
        locations = [base.child("d", f"file {number}") for number in range(30)]
        for location in locations[::2]:
            await fileio.write(location, b"x")
        await fileio.write(base.child("kept"), b"x")

        await fileio.delete_many(iter(locations))
        await fileio.delete_many([])

        assert [found.location for found in await collect(fileio, base)] == [base.child("kept")]

    # --- listing -------------------------------------------------------------------------------------

    async def test_a_listing_shows_files_at_every_depth_with_their_sizes(
        self, fileio: FileIO, base: Location
    ) -> None:
        sizes = {("a",): 0, ("d", "b"): 1, ("d", "e", "c"): 20, ("d", "e", "f", "g"): 300}
        for segments, size in sizes.items():
            await fileio.write(base.child(*segments), b"x" * size)

        listed = await collect(fileio, base)

        assert {found.location: found.size_bytes for found in listed} == {
            base.child(*segments): size for segments, size in sizes.items()
        }
        assert all(found.location.text.startswith(base.text + "/") for found in listed)

    async def test_a_listing_is_bounded_by_whole_segments(self, fileio: FileIO, base: Location) -> None:
        for name in ("orders", "orders2", "orders-old", "order"):
            await fileio.write(base.child(name, "file"), b"x")

        listed = await collect(fileio, base.child("orders"))

        assert [found.location for found in listed] == [base.child("orders", "file")]

    async def test_a_listing_of_nothing_is_empty(self, fileio: FileIO, base: Location) -> None:
        await fileio.write(base.child("file"), b"x")

        assert await collect(fileio, base.child("none")) == []
        assert await collect(fileio, base.child("file")) == []

    async def test_modification_times_are_those_of_the_last_write(
        self, fileio: FileIO, base: Location
    ) -> None:
        await fileio.write(base.child("first"), b"x")
        await fileio.write(base.child("second"), b"x")

        times = {found.location.segments[-1]: found.modified_us for found in await collect(fileio, base)}

        # Seconds since 2020 in microseconds: neither seconds nor nanoseconds.
        assert all(1_577_836_800_000_000 < time_us < 10**16 for time_us in times.values())
        assert times["first"] <= times["second"]

    async def test_a_listing_longer_than_a_page_is_complete(self, fileio: FileIO, base: Location) -> None:
        names = [f"{number:04}" for number in range(self.page_files + 50)]
        for start in range(0, len(names), 50):
            await asyncio.gather(
                *(fileio.write(base.child("d", name), b"x") for name in names[start : start + 50])
            )

        listed = await collect(fileio, base)

        assert len(listed) == len(names)
        assert {found.location.segments[-1] for found in listed} == set(names)
        await fileio.delete_many(found.location for found in listed)
        assert await collect(fileio, base) == []

    # --- what is not allowed ---------------------------------------------------------------------------

    async def test_nothing_outside_the_allowed_locations_is_touched(
        self, fileio: FileIO, base: Location
    ) -> None:
        sibling = Location.parse(f"{base.text}2/file")
        other_storage = Location.parse("s3://elsewhere/file" if base.scheme == "file" else "/elsewhere/file")
        parent = Location.parse(base.text.rpartition("/")[0] + "/file")

        for outside in (sibling, other_storage, parent):
            with pytest.raises(StorageRefused):
                await fileio.read(outside)
            with pytest.raises(StorageRefused):
                await fileio.write(outside, b"x")
            with pytest.raises(StorageRefused):
                await fileio.write(outside, b"x", overwrite=True)
            with pytest.raises(StorageRefused):
                await fileio.delete(outside)
            with pytest.raises(StorageRefused):
                await fileio.delete_many([base.child("file"), outside])
            with pytest.raises(StorageRefused):
                await fileio.exists(outside)
            with pytest.raises(StorageRefused):
                await collect(fileio, outside)


async def collect(fileio: FileIO, prefix: Location) -> list[FileInfo]:
    """The whole listing."""
    return [found async for found in fileio.list(prefix)]
