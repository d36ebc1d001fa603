"""Where files of a copy go, and which files of this machine may be read for one."""

import io
from pathlib import Path
from typing import Any

import pytest

from cynosure.client.appending.stores import Access
from cynosure.client.copying.paths import Paths
from cynosure.client.copying.reading import Reading
from cynosure.common.errors import CynosureError, Forbidden, NotFound

pytestmark = pytest.mark.anyio

PATHS = Paths("s3://theirs/t/", "s3://ours/copy")


async def nobody(*_: Any) -> Any:
    raise AssertionError("nobody asks")


def reading(*places: str) -> Reading:
    return Reading(places, Access({}, [], nobody, nobody))


def test_inside_the_location_a_path_is_kept() -> None:
    assert PATHS.rename("s3://theirs/t/data/a=1/x.parquet") == "s3://ours/copy/data/a=1/x.parquet"


@pytest.mark.parametrize(
    "path",
    [
        "s3://theirs/t2/x.parquet",
        "s3://other/t/x.parquet",
        "s3a://theirs/t/x.parquet",
        "s3://theirs/t/../../x.parquet",
        "s3://theirs/t//x.parquet",
        "s3://theirs/t/a/./x.parquet",
        "file:///etc/passwd",
        "s3://theirs/t/",
        "..",
    ],
)
def test_what_is_elsewhere_or_leads_elsewhere_gets_a_directory_of_its_own(path: str) -> None:
    renamed = PATHS.rename(path)
    directory, _, name = renamed.removeprefix("s3://ours/copy/copied/").rpartition("/")
    assert renamed.startswith("s3://ours/copy/copied/")
    assert len(directory) == 32
    assert name
    assert ".." not in renamed
    assert PATHS.rename(path) == renamed


def test_two_files_never_get_one_path() -> None:
    found = [
        "s3://theirs/t/x",
        "s3://theirs/t//x",
        "s3a://theirs/t/x",
        "s3://theirs/x",
        "s3://theirs/a b/x",
        "s3://theirs/a_b/x",
        "s3://theirs/a b",
        "s3://theirs/a_b",
        "s3://theirs/a b/a_b",
    ]
    # So it is for those of a table that is itself a copy.
    found += [each.replace("s3://ours/copy", "s3://theirs/t") for each in map(PATHS.rename, found[1:])]
    found += ["s3://theirs/t/copied", "s3://theirs/t/copied.parquet"]
    assert len({PATHS.rename(each) for each in found}) == len(found)
    # Files that were in one directory are in one.
    assert len({PATHS.rename(f"s3a://theirs/t/{each}").rpartition("/")[0] for each in "abc"}) == 1


async def test_files_of_this_machine_are_read_below_the_tables_places_only(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x").write_bytes(b"abc")
    (tmp_path / "secret").write_bytes(b"hidden")
    table = reading(f"file://{tmp_path}/t", "s3://bucket/data")

    for spelled in (f"file://{tmp_path}/t/x", f"file:{tmp_path}/t/x", f"{tmp_path}/t/x"):
        into = io.BytesIO()
        assert await table.read(spelled, into) == 3
    with pytest.raises(NotFound):
        await table.read(f"file://{tmp_path}/t/none", io.BytesIO())
    for outside in (
        f"file://{tmp_path}/secret",
        f"{tmp_path}/secret",
        f"file://{tmp_path}/t/../secret",
        f"file://{tmp_path}/t2/x",
        "file:///etc/passwd",
    ):
        with pytest.raises(Forbidden, match="outside its location"):
            await table.read(outside, io.BytesIO())


def test_a_table_in_a_store_reads_nothing_of_this_machine() -> None:
    for path in ("file:///etc/passwd", "/etc/passwd", "s3://bucket/t/x", "ftp://host/x"):
        with pytest.raises(CynosureError):
            reading("s3://bucket/t").open(path)
