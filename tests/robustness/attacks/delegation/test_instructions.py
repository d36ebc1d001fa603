"""Instructions of an order that say more than they should, or more than can be read."""

import pytest

from cynosure.common.delegated.payload import TableIdentity, TaskOrder
from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.port import Job
from cynosure.delegation.jobs.registry import open_jobs

JOBS: dict[str, Job] = {str(kind): job for kind, job in open_jobs().items()}


def check(job: Job, **properties: str) -> None:
    table = TableIdentity("1", "lake", ("ns",), "t")
    job.check(TaskOrder(job.task_type, "default", "c", table, properties=properties))


COMPACTION = JOBS["DATA_COMPACTION"]


@pytest.mark.parametrize(
    "where",
    [
        "id = (SELECT max(id) FROM cynosure.hr.salaries)",
        "id IN (\nselect 1)",
        "id IN (TABLE cynosure.hr.salaries)",
        "id IN (VALUES (1))",
        "id IN (FROM cynosure.hr.salaries SELECT id)",
        "EXISTS (SELECT 1)",
        "length(repeat('x', 2000000000)) > 1",
        "`reflect` ('java.lang.System', 'getenv', 'HOME') = data",
        "data = java_method('java.lang.Runtime', 'getRuntime')",
        "raise_error('x') IS NULL",
        "id = 1; DROP TABLE t",
        "id = 1 -- and the rest",
        "id = 1 /* and */",
        "data = '${env:HOME}' OR ${env:HOME} = 1",
        r"data = r'\' OR id = (SELECT 1) OR data = r'\'",
        "data RLIKE '(a+)+$'",
        "id::string = 'x'",
        "aggregate(array(1), 0, (a, x) -> a + x) = 1",
        "data = 'open",
        "`open = 1",
        "CASE WHEN true THEN id END = 1",
        "(id)(id) = 1",
    ],
)
def test_a_condition_says_nothing_but_which_rows(where: str) -> None:
    with pytest.raises(BadInput) as refused:
        check(COMPACTION, where=where)
    assert refused.value.details["field"] == "operation_parameters.properties.where"
    assert refused.value.fix


@pytest.mark.parametrize(
    "where",
    [
        "id = 1",
        "part = 'a' AND (id >= -3.5e2 OR NOT (id IN (1, 2L, 3)))",
        "`from` <=> 'it\\'s (select) -- no' AND a.b.c IS NOT NULL",
        "day BETWEEN DATE '2026-01-01' AND DATE'2026-01-31'",
        "name LIKE 'ab%' and größe != 7",
    ],
)
def test_a_condition_that_says_which_rows_is_taken(where: str) -> None:
    check(COMPACTION, where=where)


@pytest.mark.parametrize(
    "order", ["id; DROP TABLE t", "id = 1", "'x'", "id -- x", "${env:HOME}", "`open", "a/*b*/"]
)
def test_a_sort_order_says_nothing_but_columns(order: str) -> None:
    with pytest.raises(BadInput) as refused:
        check(COMPACTION, sort_order=order)
    assert refused.value.details["field"] == "operation_parameters.properties.sort_order"


@pytest.mark.parametrize(
    "order", ["id DESC NULLS LAST, `o'dd` asc", "zorder(a.b, c)", "bucket(4, id), größe"]
)
def test_a_sort_order_of_columns_is_taken(order: str) -> None:
    check(COMPACTION, sort_order=order)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("DATA_COMPACTION", "target_file_size_bytes"),
        ("SNAPSHOT_EXPIRY", "retain_last"),
        ("SNAPSHOT_EXPIRY", "older_than"),
        ("SNAPSHOT_EXPIRY", "max_snapshot_age_days"),
        ("METADATA_COMPACTION", "spec_id"),
        ("ORPHAN_FILE_REMOVAL", "older_than"),
        ("ORPHAN_FILE_REMOVAL", "max_orphan_file_age_in_days"),
        ("FORMAT_CONVERSION", "format_version"),
    ],
)
@pytest.mark.parametrize(
    "value", ["9" * 5_000, "9" * 20, "-1", "nan", "inf", "1e400", "٣", "²", "1_0", "0x10", "\0", "9" * 10_001]
)
def test_no_number_is_too_much_to_be_refused(kind: str, name: str, value: str) -> None:
    with pytest.raises(BadInput) as refused:
        check(JOBS[kind], **{name: value})
    assert name in refused.value.details["field"]


@pytest.mark.parametrize("days", ["0", "0.0", "0.001", "-0", "1e-9"])
def test_files_of_writers_at_work_are_nobodys_orphans(days: str) -> None:
    with pytest.raises(BadInput):
        check(JOBS["ORPHAN_FILE_REMOVAL"], max_orphan_file_age_in_days=days, dryRun="false")
