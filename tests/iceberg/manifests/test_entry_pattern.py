"""Patterns match the entries they were learned from, and no damaged ones."""

from typing import Any

import msgspec

from cynosure.iceberg.manifests.avro.encode import make_writer
from cynosure.iceberg.manifests.avro.schema import parse_schema
from cynosure.iceberg.manifests.avro_schemas import manifest_schema
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.entry_fields import entry_fields
from cynosure.iceberg.manifests.entry_pattern import EntryPattern, learn_pattern
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import write_manifest
from cynosure.iceberg.types import LONG
from tests.iceberg.manifests.costs import cost_of
from tests.iceberg.manifests.samples import make_kind

SCHEMA = manifest_schema(2, [(1000, "p", LONG)])
FIELDS = entry_fields(parse_schema(SCHEMA))
MAPS = [{1: 5, 2: 6}.items(), None, None, None, {1: b"12345678", 2: b"ab"}.items(), None]


def values(at: int, *, path: bytes = b"path", maps: list[Any] = MAPS) -> tuple[Any, ...]:
    """The fields of one entry, in the order of the file."""
    file = (
        0,
        path.decode(),
        "PARQUET",
        (at,),
        at * 100,
        70,
        *maps,
        None,
        (4, at),
        None,
        at % 2 or None,
        None,
    )
    return 1, None, at, None, file


def as_sample(entry: tuple[Any, ...]) -> list[Any]:
    *head, file = entry
    flat = [*head, *file]
    return [
        list(one) if isinstance(one, type({}.items())) else one.encode() if isinstance(one, str) else one
        for one in flat
    ]


def learn(samples: list[tuple[Any, ...]]) -> EntryPattern | None:
    return learn_pattern(FIELDS, [as_sample(one) for one in samples])


def encoded(entry: tuple[Any, ...]) -> bytes:
    out = bytearray()
    make_writer(parse_schema(SCHEMA))(out, entry)
    return bytes(out)


def test_an_entry_like_the_samples_matches_as_a_whole() -> None:
    pattern = learn([values(at) for at in range(20)])
    assert pattern is not None

    data = encoded(values(12_345))
    found = pattern.expression.match(data)

    assert found is not None
    assert found.end() == len(data)
    bounds = {
        group.key: raw
        for group, raw in zip(pattern.groups, found.groups(), strict=True)
        if group.kind == "bounds"
    }
    assert bounds[1] == b"12345678"


def test_an_entry_of_another_shape_does_not_match() -> None:
    pattern = learn([values(at) for at in range(20)])
    assert pattern is not None

    for other in ({1: b"1234567", 2: b"ab"}, {1: b"12345678"}, {1: b"12345678", 3: b"ab"}):
        assert pattern.expression.match(encoded(values(5, maps=[*MAPS[:4], other.items(), None]))) is None


def test_a_map_may_have_some_of_the_columns() -> None:
    shapes = [{1: b"12345678", 2: b"ab"}, {2: b"ab"}, {1: b"12345678"}, {}]
    maps = [[*MAPS[:4], shape.items(), None] for shape in shapes]
    pattern = learn([values(at, maps=one) for at, one in enumerate(maps)])
    assert pattern is not None
    (check,) = pattern.checks

    for at, one in enumerate(maps):
        found = pattern.expression.match(encoded(values(at, maps=one)))
        assert found is not None
        assert not check.fails(found.groups())
    # A third item that looks like the end of the map and the fields after it: only the number tells.
    *head, file = values(1, maps=[*MAPS[:4], {1: b"12345678", 2: b"ab", 0: b""}.items(), None])
    other = (*head, (*file[:13], (0, 5), *file[14:]))
    found = pattern.expression.match(encoded(other))
    assert found is not None
    assert check.fails(found.groups())


def test_samples_that_have_nothing_in_common_give_no_pattern() -> None:
    shapes = [[*MAPS[:4], {at: b"x", 1: b"y"}.items(), None] for at in range(2, 22)]

    assert learn([values(at, maps=maps) for at, maps in enumerate(shapes)]) is None


def test_no_bytes_make_matching_slow() -> None:
    pattern = learn([values(at) for at in range(20)])
    assert pattern is not None
    whole, expression = encoded(values(3)), pattern.expression

    def match() -> None:
        for at in range(len(whole)):
            expression.match(whole[:at] + b"\xff" * 50_000)
            expression.match(whole[:at] + b"\x02" * 50_000)

    assert cost_of(match) < 2


def test_files_of_many_shapes_are_read_in_time_that_grows_with_their_number() -> None:
    kind = make_kind([])
    listed = ManifestFile(path="m", length=1, spec_id=3, added_snapshot_id=1, sequence_number=1)

    def measure(count: int) -> float:
        entries = [
            Entry(
                Status.ADDED,
                None,
                None,
                None,
                ContentFile(
                    path=f"s3://b/{at}",
                    format="parquet",
                    spec_id=3,
                    partition=(),
                    record_count=1,
                    file_size_bytes=1,
                    lower_bounds=dict.fromkeys(range(1, at % 40 + 2), b"x"),
                ),
            )
            for at in range(count)
        ]
        data, _ = write_manifest(kind, entries, path="m", snapshot_id=1, codec="null")
        return min(cost_of(lambda: read_manifest(data, listed)) for _ in range(3))

    assert measure(4_000) < measure(500) * 8 * 4


def test_an_entry_survives_msgspec() -> None:
    # Entries travel in caches: what was read must be encodable.
    file = ContentFile(
        path="f", format="parquet", spec_id=0, partition=(1, "x"), record_count=1, file_size_bytes=1
    )
    entry = Entry(Status.ADDED, 1, 1, 1, file)

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(entry), type=Entry).file.path == "f"
