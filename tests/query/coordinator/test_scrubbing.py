"""What errors say in the end (I105)."""

import msgspec
import pytest

from cynosure.common.errors import CynosureError, Unavailable
from cynosure.query.coordinator.scrubbing import Scrubber
from cynosure.query.engine import Relation, TableRead
from cynosure.query.errors import NotAllowed, QueryFailed, SqlError
from cynosure.query.scan_task import Credentials, DataFile, ScanTask
from cynosure.storage.errors import StorageRefused

FILTER = {
    "type": "eq",
    "left": {"type": "reference", "id": 1},
    "right": {"type": "literal", "value": "tenant-17", "data-type": "string"},
}
TASK = ScanTask(
    "q",
    "0",
    (DataFile("s3://bucket/t/data/part 1.parquet", 1, 1, "parquet"),),
    (),
    b"{}",
    (),
    (),
    credentials=Credentials(1, {"s3.secret-access-key": "hunter2hunter2"}),
)
RELATION = Relation(
    "cyn_0",
    "lake.shop.t",
    (),
    (TASK,),
    table=TableRead("lake", ("shop",), "t", 1, True, msgspec.json.encode(FILTER), (), b"true"),
)


def scrub(error: BaseException, sql: str = "SELECT 1") -> CynosureError:
    scrubber = Scrubber(sql)
    scrubber.learn([RELATION])
    return scrubber.scrub(error)


@pytest.mark.parametrize(
    "text",
    [
        "cannot open s3://bucket/t/data/part-0.parquet",
        "cannot open s3://bucket/t/data/part 1.parquet",
        "file:/data/warehouse/lake/t.parquet is gone",
        "no such file: /data/warehouse/lake/t.parquet",
        "denied for hunter2hunter2",
        "token eyJhbGciOi.eyJzdWIi.c2ln was refused",
        "key ASIAABCDEFGHIJKL is wrong",
        "where owner = tenant-17",
        "secret wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY0 is wrong",
    ],
)
def test_paths_credentials_tokens_and_constants_are_cut(text: str):
    secrets = ("bucket", "warehouse", "hunter2", "eyJ", "ASIA", "tenant-17", "part", "wJalr")
    for error in (
        QueryFailed(text, condition="X"),
        StorageRefused("no", reason=text),
        Unavailable("no", fix=text),
        SqlError(text, fix=text, line=3, column=4),
    ):
        found = scrub(error)
        assert not any(each in str(found) for each in secrets), str(found)
        assert "…" in str(found)
        assert type(found) is type(error)


def test_what_is_harmless_stays_as_it_is():
    error = NotAllowed(
        "The function is not allowed", fix="Use upper().", line=3, column=4, function="reflect"
    )
    assert scrub(error) is error
    long = SqlError("No such column", fix="Use `a_very_long_name_of_a_column_that_somebody_has_chosen_2`.")
    assert scrub(long) is long
    failed = QueryFailed("Division by zero", condition="DIVIDE_BY_ZERO")
    assert scrub(failed) is failed


def test_what_the_user_wrote_is_no_secret_to_the_user():
    error = QueryFailed("cannot cast tenant-17")
    assert scrub(error, "SELECT CAST('tenant-17' AS INT)") is error


def test_strangers_become_an_error_without_their_words():
    found = scrub(RuntimeError("hunter2hunter2 at s3://bucket"))
    assert isinstance(found, QueryFailed)
    assert "hunter2" not in str(found)
    assert found.fix


@pytest.mark.parametrize("guess", ["tenant-17", "tenant-18"])
def test_a_guess_in_a_plan_is_shown_whether_a_policy_has_it_or_not(guess: str):
    scrubber = Scrubber("SELECT * FROM t WHERE owner = :a")
    scrubber.learn([RELATION])
    assert scrubber.clean_plan(f"Filter (owner = {guess})") == f"Filter (owner = {guess})"


def test_a_plan_is_shown_whole_and_without_paths_and_credentials():
    scrubber = Scrubber("SELECT 1")
    scrubber.learn([RELATION])
    lines = [f"+- Project [column{n}#{n}]" for n in range(500)]
    shown = scrubber.clean_plan("\n".join([*lines, "Scan s3://bucket/t/data/part 1.parquet hunter2hunter2"]))
    assert shown.splitlines()[:500] == lines
    assert not any(word in shown for word in ("bucket", "part 1", "hunter2"))
