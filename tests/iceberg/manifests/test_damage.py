"""Files that are damaged, cut off or made to hurt: one error that names the file, soon, in little memory."""

import tracemalloc
import zlib
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.avro.codecs import compress, decompress
from cynosure.iceberg.manifests.avro.container import ReadLimits
from cynosure.iceberg.manifests.avro.encode import write_container, write_long
from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import write_manifest, write_manifest_list
from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    UUID,
    DecimalType,
    FixedType,
    Type,
)
from tests.iceberg.manifests.costs import cost_of
from tests.iceberg.manifests.samples import PHASES, SNAPSHOT, long_bound, make_kind

PATH = "s3://bucket/metadata/m.avro"
LISTED = ManifestFile(path=PATH, length=1, spec_id=3, added_snapshot_id=SNAPSHOT, sequence_number=4)


def make_manifest(count: int = 3, *, codec: str = "null") -> bytes:
    files = [
        ContentFile(
            path=f"s3://bucket/data/{at}.parquet",
            format="parquet",
            spec_id=3,
            partition=(at % 3, "north"),
            record_count=at,
            file_size_bytes=at * 100,
            value_counts={1: at, 2: at},
            lower_bounds={1: long_bound(at), 2: b"abc"},
            split_offsets=(4, 900),
        )
        for at in range(count)
    ]
    kind = make_kind(["long", "string"])
    written = [Entry(Status.ADDED, None, None, None, file) for file in files]
    return write_manifest(kind, written, path=PATH, snapshot_id=SNAPSHOT, codec=codec)[0]


def make_list() -> bytes:
    manifest = ManifestFile(path=PATH, length=5, spec_id=0, added_snapshot_id=1, partitions=())
    return write_manifest_list(
        [manifest, manifest],
        format_version=2,
        snapshot_id=SNAPSHOT,
        parent_snapshot_id=None,
        sequence_number=1,
        codec="null",
    )[0]


def container(schema: Any, block: bytes, *, count: int, codec: str = "null") -> bytes:
    """A file with one block whose parts need not fit together."""
    whole = write_container(
        msgspec.json.encode({"type": "record", "name": "r", "fields": []}), [], properties={}
    )
    sync = whole[-16:]
    out = bytearray(b"Obj\x01")
    header = {"avro.schema": msgspec.json.encode(schema), "avro.codec": codec.encode()}
    write_long(out, len(header))
    for key, value in header.items():
        write_long(out, len(key))
        out += key.encode()
        write_long(out, len(value))
        out += value
    out.append(0)
    out += sync
    write_long(out, count)
    write_long(out, len(block))
    return bytes(out + block + sync)


def entry_schema(*more: Any, **changes: Any) -> dict[str, Any]:
    types = {
        "file_path": "string",
        "file_format": "string",
        "record_count": "long",
        "file_size_in_bytes": "long",
    }
    ids = {"file_path": 100, "file_format": 101, "record_count": 103, "file_size_in_bytes": 104}
    fields = [
        {"name": name, "type": type_, "field-id": ids[name]} for name, type_ in (types | changes).items()
    ]
    file = {"type": "record", "name": "r2", "fields": [*fields, *more]}
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            {"name": "status", "type": "int", "field-id": 0},
            {"name": "data_file", "type": file, "field-id": 2},
        ],
    }


ENTRY = b"\x02" + b"\x02a" + b"\x02b" + b"\x02" + b"\x02"
"""Status, path, format, records and size of one file in `entry_schema`."""


def test_a_valid_file_is_read() -> None:
    assert len(read_manifest(make_manifest(), LISTED)) == 3
    assert len(read_manifest(container(entry_schema(), ENTRY * 2, count=2), LISTED)) == 2


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_every_cut_is_noticed(codec: str) -> None:
    whole = make_manifest(codec=codec)
    listed = msgspec.structs.replace(LISTED, added_files=3, existing_files=0, deleted_files=0)
    start = whole.index(b"partition-spec-id")  # cuts in the long texts before are all the same
    for end in [*range(0, start, 97), *range(start, len(whole))]:
        with pytest.raises(InvalidManifest) as caught:
            read_manifest(whole[:end], listed)
        assert caught.value.field == PATH


def test_every_cut_of_a_list_is_noticed() -> None:
    whole = make_list()
    first_block = whole.index(whole[-16:]) + 16
    for end in [*range(first_block - 100, first_block), *range(first_block + 1, len(whole))]:
        with pytest.raises(InvalidManifest) as caught:
            read_manifest_list(whole[:end], path="list")
        assert caught.value.field == "list"


def test_the_error_says_where() -> None:
    whole = bytearray(make_manifest())
    first_block = whole.index(whole[-16:]) + 16
    whole[-1] ^= 1

    with pytest.raises(InvalidManifest) as caught:
        read_manifest(bytes(whole), LISTED)

    assert caught.value.details["position"] == first_block


@settings(max_examples=400, phases=PHASES, deadline=None)
@given(
    count=st.sampled_from([3, 300]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), max_size=3),
)
def test_changed_bytes_never_raise_anything_else(count: int, changes: list[tuple[float, int]]) -> None:
    data = bytearray(_manifests[count])
    for place, change in changes:
        data[int(place * (len(data) - 1))] ^= change
    try:
        found = read_manifest(bytes(data), LISTED)
    except InvalidManifest:
        return
    for entry in found.entries():
        assert entry.file.record_count >= 0


_manifests = {count: make_manifest(count) for count in (3, 300)}


@settings(max_examples=100, phases=PHASES, deadline=None)
@given(place=st.floats(0, 1), change=st.integers(1, 255))
def test_changed_bytes_of_a_list_never_raise_anything_else(place: float, change: int) -> None:
    data = bytearray(_list)
    data[int(place * (len(data) - 1))] ^= change
    with suppress(InvalidManifest):
        read_manifest_list(bytes(data), path="list")


_list = make_list()

LONG = {"type": "array", "items": "long", "element-id": 133}
HUGE = bytearray()
write_long(HUGE, 2**62)


@pytest.mark.parametrize(
    ("schema", "block", "count"),
    [
        pytest.param(entry_schema(), ENTRY, 2**62, id="more entries than bytes"),
        pytest.param(entry_schema(), ENTRY + b"\x00", 1, id="bytes after the last entry"),
        pytest.param(entry_schema(), b"\x02" + bytes(HUGE) + b"a", 1, id="a text longer than the file"),
        pytest.param(entry_schema(), b"\x02" + b"\x01a", 1, id="a text of negative length"),
        pytest.param(entry_schema(), b"\x02" + b"\xff" * 20, 1, id="a number that does not end"),
        pytest.param(entry_schema(), b"\x08" + ENTRY[1:], 1, id="an unknown status"),
        pytest.param(entry_schema(), b"\x02\x02\xff\x02b\x02\x02", 1, id="a path that is not UTF-8"),
        pytest.param(entry_schema(), b"\x02\x02a\x02b\x01\x02", 1, id="a negative record count"),
        pytest.param(
            entry_schema({"name": "split_offsets", "type": LONG, "field-id": 132}),
            ENTRY + bytes(HUGE),
            1,
            id="a list of 2**62 items",
        ),
        pytest.param(
            entry_schema({"name": "x", "type": {"type": "array", "items": "null"}}),
            ENTRY + bytes(HUGE),
            1,
            id="a list of 2**62 nothings",
        ),
        pytest.param(
            entry_schema(
                {"name": "x", "type": {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}}
            ),
            ENTRY + bytes(HUGE),
            1,
            id="a list of values without a size",
        ),
        pytest.param(entry_schema(file_path="long"), ENTRY, 1, id="a path that is a number"),
        pytest.param(entry_schema({"name": "x", "type": "r2"}), ENTRY, 1, id="a type inside itself"),
        pytest.param(
            entry_schema(*({"name": f"n{at}", "type": "null"} for at in range(100))),
            ENTRY,
            1,
            id="many nothings",
        ),
        pytest.param("long", b"\x02", 1, id="entries that are numbers"),
        pytest.param({"type": "record", "name": "r", "fields": []}, b"", 5, id="entries without fields"),
    ],
)
def test_hostile_files_are_refused_at_once(schema: Any, block: bytes, count: int) -> None:
    data = container(schema, block, count=count)

    def read() -> None:
        with pytest.raises(InvalidManifest):
            read_manifest(data, LISTED)

    assert cost_of(read) < 1


def test_a_schema_that_multiplies_itself_is_refused() -> None:
    # Each record has the one before ten times: ten lines stand for ten billion fields.
    schema: Any = {"type": "record", "name": "r0", "fields": [{"name": "a", "type": "null"}]}
    for level in range(1, 12):
        first = {"name": "f0", "type": schema}
        rest = [{"name": f"f{at}", "type": f"r{level - 1}"} for at in range(1, 10)]
        schema = {"type": "record", "name": f"r{level}", "fields": [first, *rest]}
    data = container(entry_schema({"name": "x", "type": schema}), ENTRY, count=1)

    def read() -> None:
        with pytest.raises(InvalidManifest):
            read_manifest(data, LISTED)

    assert cost_of(read) < 1


@pytest.mark.parametrize("depth", [40, 100_000])
def test_a_deep_schema_is_refused(depth: int) -> None:
    inner = b'{"type":"array","items":' * depth + b'"long"' + b"}" * depth
    data = container("long", b"", count=0).replace(b'\x0c"long"', bytes(_sized(inner)))

    with pytest.raises(InvalidManifest):
        read_manifest(data, LISTED)


def _sized(data: bytes) -> bytearray:
    out = bytearray()
    write_long(out, len(data))
    return out + data


def test_a_block_that_unpacks_to_gigabytes_stops_at_the_limit() -> None:
    writer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(writer.compress(bytes(2**20)) for _ in range(300)) + writer.flush()
    data = container(entry_schema(), packed, count=1, codec="deflate")
    tracemalloc.start()

    with pytest.raises(InvalidManifest, match="larger than allowed"):
        read_manifest(data, LISTED, limits=ReadLimits(max_decoded_bytes=2**20))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * 2**20


@pytest.mark.parametrize("codec", ["zstandard", "snappy"])
def test_other_codecs_stop_at_the_limit_too(codec: str) -> None:
    name = "zstd" if codec == "zstandard" else codec
    packed = pyarrow.compress(bytes(2**24), codec=name, asbytes=True)
    tracemalloc.start()

    with pytest.raises(Malformed, match="larger than allowed"):
        decompress(codec, packed + bytes(4 if codec == "snappy" else 0), limit=2**16)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22


@pytest.mark.parametrize("cut", [1, 5])
def test_a_block_whose_last_bytes_are_missing_is_refused(cut: int) -> None:
    with pytest.raises(Malformed, match="cut off"):
        decompress("deflate", compress("deflate", bytes(1000))[:-cut], limit=2**20)


def test_many_empty_blocks_take_time_by_their_number_only() -> None:
    whole = container(entry_schema(), ENTRY, count=1)
    empty = b"\x00\x00" + whole[-16:]
    data = whole + empty * 30_000 + whole[whole.rindex(whole[-16:], 0, -16) + 16 :]

    assert cost_of(lambda: read_manifest(data, LISTED)) < 3
    assert len(read_manifest(data, LISTED)) == 2


def test_a_codec_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidManifest, match="codec"):
        read_manifest(container(entry_schema(), ENTRY, count=1, codec="xz"), LISTED)


@settings(max_examples=60, deadline=None)
@given(data=st.one_of(st.binary(max_size=300), st.binary(max_size=20).map(lambda one: one * 500)))
def test_snappy_is_read_as_others_write_it(data: bytes) -> None:
    packed = pyarrow.compress(data, codec="snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big")

    assert decompress("snappy", packed, limit=2**20) == data


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=60))
def test_damaged_snappy_raises_nothing_else(data: bytes) -> None:
    with suppress(Malformed):
        decompress("snappy", data, limit=2**16)


def test_another_column_in_every_file_costs_no_more_than_the_bytes() -> None:
    kind = make_kind([])
    written = [
        Entry(
            Status.ADDED,
            None,
            None,
            None,
            ContentFile(
                path="f",
                format="parquet",
                spec_id=3,
                partition=(),
                record_count=1,
                file_size_bytes=1,
                value_counts={1000 + at: 1},
                lower_bounds={1000 + at: b"x"},
            ),
        )
        for at in range(3000)
    ]
    data, _ = write_manifest(kind, written, path=PATH, snapshot_id=SNAPSHOT)

    found = read_manifest(data, LISTED)

    assert found.size_bytes < 3000 * 1500
    assert found.file(2999).lower_bounds == {3999: b"x"}
    assert list(found.value_counts[1005])[4:7] == [None, 1, None]


def test_data_files_and_delete_files_do_not_mix() -> None:
    schema = entry_schema({"name": "content", "type": "int", "field-id": 134})

    with pytest.raises(InvalidManifest, match="mixes"):
        read_manifest(container(schema, ENTRY + b"\x00" + ENTRY + b"\x02", count=2), LISTED)


def test_an_existing_file_without_a_sequence_number_is_refused() -> None:
    with pytest.raises(InvalidManifest, match="sequence number"):
        read_manifest(container(entry_schema(), b"\x00" + ENTRY[1:], count=1), LISTED)


# Schemas that mean the same.


def test_fields_are_found_by_id_in_any_order_under_any_name() -> None:
    schema = entry_schema()
    file = schema["fields"][1]["type"]
    file["fields"] = [{**field, "name": f"n{at}"} for at, field in enumerate(reversed(file["fields"]))]
    file["fields"].insert(
        1, {"name": "new", "type": ["null", {"type": "map", "values": "double"}], "field-id": 9}
    )
    block = b"\x02" + b"\x0a" + b"\x02\x02\x02k" + bytes(8) + b"\x00" + b"\x06" + b"\x02b" + b"\x02a"

    (entry,) = read_manifest(container(schema, block, count=1), LISTED).entries()

    assert (entry.file.path, entry.file.format) == ("a", "b")
    assert (entry.file.record_count, entry.file.file_size_bytes) == (3, 5)


def test_fields_without_ids_are_found_by_name_or_alias() -> None:
    schema = entry_schema()
    for field in [*schema["fields"], *schema["fields"][1]["type"]["fields"]]:
        del field["field-id"]
    schema["fields"][1]["type"]["fields"][0] |= {"name": "location", "aliases": ["file_path"]}

    (entry,) = read_manifest(container(schema, ENTRY, count=1), LISTED).entries()

    assert entry.file.path == "a"


def partitioned(type_: Any, value: bytes) -> bytes:
    """A file with two partition fields, the second first."""
    fields = [
        {"name": name, "type": ["null", type_], "field-id": id_} for name, id_ in (("b", 1001), ("a", 1000))
    ]
    record = {"type": "record", "name": "r102", "fields": fields}
    schema = entry_schema({"name": "partition", "type": record, "field-id": 102})
    return container(schema, ENTRY + b"\x02" + value + b"\x00", count=1)


def test_partition_values_come_in_the_order_of_the_spec() -> None:
    data = partitioned("int", b"\x0a")

    as_stored = read_manifest(data, LISTED)
    as_asked = read_manifest(data, LISTED, partition=[(1000, INT), (1001, INT), (1002, STRING)])

    assert as_stored.file(0).partition == (5, None)
    assert as_asked.file(0).partition == (None, 5, None)
    assert [field.id for field in as_asked.partitions.fields] == [1000, 1001, 1002]


@pytest.mark.parametrize("type_", [STRING, BOOLEAN, DOUBLE, UUID, BINARY, DecimalType(9, 2), FixedType(4)])
def test_a_partition_value_of_another_type_is_refused(type_: Type) -> None:
    with pytest.raises(InvalidManifest, match="not of the type"):
        read_manifest(partitioned("int", b"\x0a"), LISTED, partition=[(1000, INT), (1001, type_)])


def test_a_partition_value_that_is_a_list_is_refused() -> None:
    with pytest.raises(InvalidManifest, match="partition has another type"):
        read_manifest(partitioned({"type": "array", "items": "int"}, b"\x00"), LISTED)


def test_metrics_may_have_their_parts_in_another_order() -> None:
    item = {
        "type": "record",
        "name": "i",
        "fields": [{"name": "value", "type": ["null", "long"]}, {"name": "key", "type": "int"}],
    }
    maps = {"type": "array", "items": item}
    schema = entry_schema(
        {"name": "value_counts", "type": maps, "field-id": 109},
        {"name": "column_sizes", "type": ["null", maps | {"items": "i"}], "field-id": 108},
    )
    pairs = b"\x04" + b"\x02\x0a\x02" + b"\x00\x04" + b"\x00"

    (entry,) = read_manifest(container(schema, ENTRY + pairs + b"\x02" + pairs, count=1), LISTED).entries()

    assert entry.file.value_counts == {1: 5}
    assert entry.file.column_sizes == {1: 5}


def test_values_that_may_be_null_are_read_in_many_files_too() -> None:
    item = {
        "type": "record",
        "name": "i",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "long"]}],
    }
    schema = entry_schema({"name": "value_counts", "type": {"type": "array", "items": item}, "field-id": 109})
    block = (ENTRY + b"\x02" + b"\x02\x02\x00" + b"\x00") * 1000

    found = read_manifest(container(schema, block, count=1000), LISTED)

    assert [*found.value_counts[1]] == [0] * 1000


def test_a_count_below_zero_is_told_as_it_is() -> None:
    item = {
        "type": "record",
        "name": "i",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "long"}],
    }
    schema = entry_schema({"name": "value_counts", "type": {"type": "array", "items": item}, "field-id": 109})
    block = ENTRY + b"\x04" + b"\x02\x01" + b"\x04\xff\x03" + b"\x00"

    (entry,) = read_manifest(container(schema, block, count=1), LISTED).entries()

    assert entry.file.value_counts == {1: -1, 2: -256}


def test_a_list_in_parts_with_sizes_is_one_list() -> None:
    schema = entry_schema({"name": "split_offsets", "type": LONG, "field-id": 132})
    block = ENTRY + b"\x01\x02\x08" + b"\x02\x0a" + b"\x00"

    (entry,) = read_manifest(container(schema, block, count=1), LISTED).entries()

    assert entry.file.split_offsets == (4, 5)
