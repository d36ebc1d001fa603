"""The suite of appends runs, tiny, and says which promises it judges; not how fast."""

import asyncio

import pytest
from benchmarks.append_clients import file_json, make_file
from benchmarks.append_stage import find_minio
from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import appends

from cynosure.iceberg.manifests.content_file_json import JsonTypes, file_from_json
from cynosure.iceberg.types import LONG, STRING


@pytest.mark.s3
def test_the_appends_suite_measures_our_ways_to_append() -> None:
    given = {"clients": "3", "appends": "2", "ways": "standard,rebase,endpoint", "count": "0"}

    result = asyncio.run(run_suite("appends", Options(given), rounds=1, warmups=0))

    assert {figures.operations for (figures,) in result.candidates.values()} == {6}
    assert all(figures.watched_cpu_s > 0 for (figures,) in result.candidates.values())
    assert result.candidates["endpoint"][0].notes["client requests"] == 0
    assert [promise.figure for promise in appends.promises(result) if promise.is_kept] == [
        "rebase: retries of clients per append",
        "endpoint: retries of clients per append",
    ]


@pytest.mark.s3
def test_buckets_of_a_run_are_gone_afterwards() -> None:
    server = find_minio()
    with appends.make_bucket(server, "folder") as made:
        asyncio.run(appends.Files(made).write(f"s3://{made.bucket}/folder/a", b"x"))

    with pytest.raises(FileNotFoundError):
        asyncio.run(appends.Files(made).read(f"s3://{made.bucket}/folder/a"))


def test_both_kinds_of_committers_say_the_same_of_a_file() -> None:
    file = make_file("s3://b/t/data/1.parquet", 2048)
    types = JsonTypes({0: ()}, {1: LONG, 2: STRING}.get)

    assert file_from_json(file_json(file), types, field="data-files[0]") == file
