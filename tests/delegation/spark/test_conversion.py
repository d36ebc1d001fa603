"""Format versions go up; directories of Parquet files become tables, where they are."""

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from cynosure.common.delegated.settings import DelegationSettings, ServiceSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.conversion.job import ConversionJob
from cynosure.delegation.jobs.port import JobFailed
from tests.delegation.spark.oracle import look
from tests.delegation.spark.world import Lake, load_table, make_order

COLUMNS: dict[str, Any] = {
    "id": pa.array([1, 2, 3], pa.int64()),
    "small": pa.array([1, None, 3], pa.int16()),
    "name": pa.array(["a", "b", None]),
    "price": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(9, 2)),
    "day": pa.array([date(2026, 1, 1), None, date(1969, 12, 31)]),
    "at": pa.array([datetime(2026, 1, 1, 12, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
    "ratio": pa.array([0.5, float("nan"), None], pa.float64()),
    "tags": pa.array([["x"], [], None], pa.list_(pa.string())),
    "inner": pa.array([{"a": 1, "b": "q"}, None, {"a": None, "b": "r"}]),
    "counts": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
}


def write(lake: Lake, place: str, files: dict[str, pa.Table], **options: Any) -> None:
    """As the owner of the storage."""
    if lake.store is None:
        system, root = pafs.LocalFileSystem(), place.removeprefix("file://")
    else:
        store = lake.store
        system = pafs.S3FileSystem(
            access_key=store.access_key_id,
            secret_key=store.secret_access_key,
            endpoint_override=store.endpoint.removeprefix("http://"),
            scheme="http",
            region=store.region,
        )
        root = place.removeprefix("s3://")
    for name, table in files.items():
        path = f"{root}/{name}"
        if lake.store is None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, filesystem=system, **options)


def place_in(lake: Lake) -> str:
    """A place of the catalog's that nobody has."""
    answer = lake.served.login
    assert answer
    return f"{base_of(lake)}/ns/adopted_{uuid.uuid4().hex[:8]}"


def base_of(lake: Lake) -> str:
    lake.sql("CREATE TABLE IF NOT EXISTS c.ns.probe (id INT) USING iceberg")
    location: str = lake.load(("ns", "probe"))["metadata"]["location"]
    return location.rsplit("/", 2)[0]


def convert(lake: Lake, path: tuple[str, ...], **properties: str) -> dict[str, Any]:
    job = ConversionJob()
    order = lake.order(TaskType.FORMAT_CONVERSION, path, **properties)
    job.check(order)
    context = lake.context(order)
    allowed = (base_of(lake),) if lake.store is None else ()
    context.settings = DelegationSettings(service=ServiceSettings(file_locations=allowed))
    return lake.loop.run(job.run(context)).details


@pytest.mark.s3
@pytest.mark.parametrize("where", ["local", "s3"])
def test_a_directory_becomes_a_table_without_being_copied(where: str, request: pytest.FixtureRequest):
    lake: Lake = request.getfixturevalue(f"{where}_lake")
    place, path = place_in(lake), ("ns", f"adopted_{uuid.uuid4().hex[:8]}")
    table = pa.table(COLUMNS)
    other = table.select(["name", "id"]).set_column(1, "id", pa.array([7, 8, 9], pa.int64()))
    write(lake, place, {"a.parquet": table, "more/b.parquet": other, "_SUCCESS.parquet": table})
    before = lake.list_files(place)

    done = convert(lake, path, source=place)

    assert (done["files_found"], done["files_added"]) == (2, 2)
    name = f"c.{'.'.join(path)}"
    assert lake.sql(f"SELECT id, name FROM {name} ORDER BY id") == [
        (1, "a"), (2, "b"), (3, None), (7, "a"), (8, "b"), (9, None)
    ]  # fmt: skip
    [row] = lake.sql(
        "SELECT small, cast(price AS STRING), cast(day AS STRING), cast(at AS STRING), ratio, tags[0],"
        f" inner.b, counts['k'] FROM {name} WHERE id = 1"
    )
    assert row == (1, "1.50", "2026-01-01", "2026-01-01 12:00:00", 0.5, "x", "q", 1)
    assert lake.sql(f"SELECT id FROM {name} WHERE price < 0 OR day < DATE '1970-01-01' ORDER BY id") == [
        (2,),
        (3,),
    ]
    state = look(lake, path)
    assert not state.missing
    assert before <= state.there
    assert {
        each for each in state.there - before if not each.rpartition("/")[0].endswith("metadata")
    } == set()
    # Again: nothing is there twice.
    assert convert(lake, path, source=place)["files_added"] == 0
    write(lake, place, {"c.parquet": table})
    assert convert(lake, path, source=place)["files_added"] == 1
    assert lake.sql(f"SELECT count(*) FROM {name}") == [(9,)]


def test_directories_of_partitions_become_partitions(local_lake: Lake):
    place, path = place_in(local_lake), ("ns", f"adopted_{uuid.uuid4().hex[:8]}")
    table = pa.table({"id": pa.array([1, 2], pa.int64())})
    write(
        local_lake,
        place,
        {
            "day=2026-01-01/region=a%2Fb/x.parquet": table,
            "day=2026-01-02/region=__HIVE_DEFAULT_PARTITION__/x.parquet": table,
        },
    )

    done = convert(local_lake, path, source=place)

    assert done["partition_columns"] == ["day", "region"]
    name = f"c.{'.'.join(path)}"
    assert local_lake.sql(f"SELECT DISTINCT cast(day AS STRING), region FROM {name} ORDER BY day") == [
        ("2026-01-01", "a/b"),
        ("2026-01-02", None),
    ]
    assert local_lake.sql(f"SELECT count(*) FROM {name} WHERE day = DATE '2026-01-02'") == [(2,)]


WRONG: dict[str, dict[str, Any]] = {
    "A column has a type": {"a.parquet": pa.table({"n": pa.array([1], pa.uint64())})},
    "different types": {
        "a.parquet": pa.table({"n": pa.array([1])}),
        "b.parquet": pa.table({"n": pa.array(["x"])}),
    },
    "mixed": {"a=1/x/b.parquet": pa.table({"n": pa.array([1])})},
    "other partition directories": {
        "a=1/b.parquet": pa.table({"n": pa.array([1])}),
        "b.parquet": pa.table({"n": pa.array([1])}),
    },
    "another format": {"_delta_log/b.parquet": pa.table({"n": pa.array([1])})},
    "no Parquet files": {},
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_a_table_is_refused_before_anything_is_made(text: str, local_lake: Lake):
    place, path = place_in(local_lake), ("ns", f"adopted_{uuid.uuid4().hex[:8]}")
    write(local_lake, place, WRONG[text])
    before = local_lake.list_files(place)

    with pytest.raises(JobFailed, match=text) as failed:
        convert(local_lake, path, source=place)

    assert (failed.value.code, failed.value.status) == ("CONVERSION_REFUSED", 409)
    assert load_table(local_lake.served, path) is None
    assert local_lake.list_files(place) == before


def test_a_file_that_is_damaged_is_named(local_lake: Lake):
    place, path = place_in(local_lake), ("ns", f"adopted_{uuid.uuid4().hex[:8]}")
    write(local_lake, place, {"a.parquet": pa.table({"n": pa.array([1])})})
    Path(place.removeprefix("file://"), "bad.parquet").write_bytes(b"PAR1 not really PAR1")

    with pytest.raises(JobFailed, match=r"bad\.parquet"):
        convert(local_lake, path, source=place)

    assert load_table(local_lake.served, path) is None


def test_local_files_are_read_only_where_the_service_may(local_lake: Lake, tmp_path: Path):
    write(local_lake, tmp_path.as_uri(), {"a.parquet": pa.table({"n": pa.array([1])})})
    with pytest.raises(JobFailed, match="may not touch local files"):
        convert(local_lake, ("ns", "elsewhere"), source=tmp_path.as_uri())


def test_a_table_elsewhere_is_refused(local_lake: Lake):
    place = place_in(local_lake)
    with pytest.raises(JobFailed, match="another place"):
        convert(local_lake, ("ns", "probe"), source=place)


def test_format_versions_go_up_and_never_down(local_lake: Lake):
    path = ("ns", f"old_{uuid.uuid4().hex[:8]}")
    name = f"c.{'.'.join(path)}"
    local_lake.sql(
        f"CREATE TABLE {name} (id BIGINT) USING iceberg TBLPROPERTIES ('format-version'='1')",
        f"INSERT INTO {name} VALUES (1), (2)",
    )
    before = look(local_lake, path)

    for version in ("2", "3", "3"):
        done = convert(local_lake, path, format_version=version)
        assert done["format_version_after"] == int(version)
        assert local_lake.load(path)["metadata"]["format-version"] == int(version)

    assert local_lake.sql(f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,)]
    after = look(local_lake, path)
    assert {each for each in after.there ^ before.there if not each.endswith(".metadata.json")} == set()
    with pytest.raises(BadInput) as wrong:
        convert(local_lake, path, format_version="2")
    assert wrong.value.field == "operation_parameters.properties.format_version"


@pytest.mark.parametrize(
    "properties",
    [{}, {"format_version": "4"}, {"format_version": "2", "source": "s3://b/x"}, {"source": "nowhere"}],
)
def test_orders_that_say_too_little_or_too_much_are_refused(properties: dict[str, str]):
    with pytest.raises(BadInput) as wrong:
        ConversionJob().check(make_order("c", TaskType.FORMAT_CONVERSION, ("a", "b"), None, **properties))
    assert wrong.value.field.startswith("operation_parameters.properties.")
    assert msgspec.json.encode(wrong.value.fix)
