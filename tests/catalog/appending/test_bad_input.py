"""What cannot be appended is refused with the item that is wrong, and nothing is written."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pytest

from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import BadInput
from cynosure.iceberg.appending.writing import manifest_kind
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.write_manifest import write_manifest
from cynosure.iceberg.metadata import parse_metadata
from cynosure.testing.small_catalog import ROOT
from tests.catalog.appending.test_append_files import file, planned, where
from tests.catalog.tables import T, decoded, make

pytestmark = pytest.mark.anyio
SPEC = msgspec.Raw(b'{"fields":[{"source-id":1,"transform":"bucket[4]","name":"b"}]}')
OTHER = Identifier(("ns",), "other")


class Sent(NamedTuple):
    data_files: Sequence[dict[str, Any]] = ()
    manifests: Sequence[str] = ()
    options: Mapping[str, Any] = MappingProxyType({})

    async def append(self, catalog: OpenCatalog) -> None:
        addition = Addition(data_files=self.data_files, manifests=self.manifests, **self.options)
        await append_files(catalog, ROOT, T, addition)


def one(location: str, name: str = "new", **fields: Any) -> dict[str, Any]:
    return file(location, name, **{"partition": [1], **fields})


def bounds(value: int) -> dict[str, Any]:
    """Metrics of a file whose column 1 has one value only."""
    both = {"keys": [1], "values": [value]}
    return {"lower-bounds": both, "upper-bounds": both}


def write(location: str, name: str, *entries: Entry, cut: int | None = None, catalog_json: bytes) -> str:
    folder = Path(location.removeprefix("file://")) / "metadata"
    path = f"file://{folder / name}"
    kind = manifest_kind(parse_metadata(catalog_json), 0)
    data, _ = write_manifest(kind, entries, path=path, snapshot_id=1)
    (folder / name).write_bytes(data[:cut])
    return path


def entry(location: str, name: str, status: Status = Status.ADDED) -> Entry:
    content = ContentFile(
        path=f"{location}/data/{name}.parquet",
        format="parquet",
        spec_id=0,
        partition=(1,),
        record_count=10,
        file_size_bytes=100,
    )
    number = None if status is Status.ADDED else 1
    return Entry(status, 1, number, number, content)


CASES: dict[str, tuple[Callable[[str, str], Sent], str]] = {
    "nothing": (lambda at, other: Sent(), "data-files"),
    "foreign path": (lambda at, other: Sent([one("file:///elsewhere")]), "data-files[0].file-path"),
    "another table's file": (lambda at, other: Sent([one(at), one(other)]), "data-files[1].file-path"),
    "a way out": (lambda at, other: Sent([one(f"{at}/../x")]), "data-files[0].file-path"),
    "the same twice": (lambda at, other: Sent([one(at, "x"), one(at, "x")]), "data-files[1].file-path"),
    "wrong spec id": (lambda at, other: Sent([one(at, **{"spec-id": 7})]), "data-files[0].spec-id"),
    "no partition": (lambda at, other: Sent([one(at, partition=[])]), "data-files[0].partition"),
    "wrong type": (lambda at, other: Sent([one(at, partition=["1"])]), "data-files[0].partition[0]"),
    "partition of other rows": (
        lambda at, other: Sent([one(at, **bounds(34))]),  # bucket[4] of 34 is 3
        "data-files[0].partition[0]",
    ),
    "deletes": (lambda at, other: Sent([one(at, content="position-deletes")]), "data-files[0].content"),
    "no size": (
        lambda at, other: Sent([one(at, **{"file-size-in-bytes": 0})]),
        "data-files[0].file-size-in-bytes",
    ),
    "row ids": (lambda at, other: Sent([one(at, **{"first-row-id": 5})]), "data-files[0].first-row-id"),
    "present": (lambda at, other: Sent([one(at), one(at, "old")]), "data-files[1].file-path"),
    "no such branch": (lambda at, other: Sent([one(at)], options={"branch": "b"}), "branch"),
    "own summary": (
        lambda at, other: Sent([one(at)], options={"summary": {"total-records": "1"}}),
        "summary.total-records",
    ),
    "manifest elsewhere": (lambda at, other: Sent(manifests=[f"{other}/metadata/m.avro"]), "manifests[0]"),
    "no manifest": (lambda at, other: Sent(manifests=[f"{at}/metadata/none.avro"]), "manifests[0]"),
    "cut manifest": (lambda at, other: Sent(manifests=[f"{at}/metadata/cut.avro"]), "manifests[0]"),
    "manifest with old files": (
        lambda at, other: Sent(manifests=[f"{at}/metadata/whole.avro", f"{at}/metadata/existing.avro"]),
        "manifests[1]",
    ),
    "manifest with a foreign file": (
        lambda at, other: Sent(manifests=[f"{at}/metadata/foreign.avro"]),
        "manifests.files[0].file-path",
    ),
    "in both": (
        lambda at, other: Sent([one(at, "listed")], [f"{at}/metadata/whole.avro"]),
        "manifests",
    ),
}


@pytest.fixture
async def at(catalog: OpenCatalog) -> str:
    await make(catalog, partition_spec=SPEC)
    await make(catalog, OTHER)
    location = await where(catalog)
    addition = Addition(data_files=[one(location, "old")])
    await append_files(catalog, ROOT, T, addition)
    json = (await load_table(catalog, ROOT, T)).metadata
    for name, entries, cut in (
        ("whole.avro", [entry(location, "listed")], None),
        ("cut.avro", [entry(location, "listed")], -9),
        ("existing.avro", [entry(location, "e", Status.EXISTING)], None),
        ("foreign.avro", [entry("file:///elsewhere", "f")], None),
    ):
        write(location, name, *entries, cut=cut, catalog_json=json)
    return location


@pytest.mark.parametrize("name", CASES)
async def test_what_is_wrong_is_named_and_nothing_is_written(catalog: OpenCatalog, at: str, name: str):
    make_sent, field = CASES[name]
    other = decoded(await load_table(catalog, ROOT, OTHER))["location"]
    sent = make_sent(at, other)
    before = await load_table(catalog, ROOT, T)
    files = sorted(Path(at.removeprefix("file://")).rglob("*"))

    with pytest.raises(BadInput) as refused:
        await sent.append(catalog)

    assert refused.value.details["field"] == field
    assert refused.value.fix
    await catalog.shared.background.close()
    assert sorted(Path(at.removeprefix("file://")).rglob("*")) == files
    assert (await load_table(catalog, ROOT, T)).etag == before.etag


async def test_a_whole_manifest_is_appended(catalog: OpenCatalog, at: str):
    appended = await append_files(catalog, ROOT, T, Addition(manifests=[f"{at}/metadata/whole.avro"]))

    assert appended.added_files == 1
    assert await planned(catalog) == ["listed", "old"]


async def test_another_table_under_the_name_is_not_appended_to(catalog: OpenCatalog, at: str):
    addition = Addition(data_files=[one(at)], table_uuid="11111111-1111-1111-1111-111111111111")

    with pytest.raises(RequirementFailed, match="UUID"):
        await append_files(catalog, ROOT, T, addition)
