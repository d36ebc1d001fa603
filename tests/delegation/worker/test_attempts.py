"""What becomes of a task: every way an attempt can end, and what is kept of it."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from cynosure.common.delegated.record import ExecutionResult, TaskProgress
from cynosure.common.delegated.settings import DelegationSettings, ServiceSettings
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import (
    BadInput,
    Conflict,
    Contended,
    CynosureError,
    Forbidden,
    NotAuthenticated,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.delegation.jobs.port import JobContext, JobFailed, JobPostponed
from cynosure.delegation.store.port import Receipt
from cynosure.delegation.worker.outcome import status_of
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.testing.small_delegation import Gate, SmallDelegation, make_order, stumble, succeed

pytestmark = pytest.mark.anyio
S = TaskStatus


async def run_once(small: SmallDelegation, name: str = "t") -> str:
    task_id = (await small.service.submit(make_order(name))).task_id
    await small.start_worker()
    await small.settle()
    return task_id


async def test_a_task_goes_from_submitted_to_success(small: SmallDelegation) -> None:
    small.job.script = [succeed(files=3, size=3 * 2**20)]

    task_id = await run_once(small)

    assert await small.statuses(task_id) == [S.SUBMITTED, S.ACQUIRING_RESOURCES, S.RUNNING, S.SUCCESS]
    details = await small.details(task_id)
    assert details.execution_result == ExecutionResult(3, 3 * 2**20)
    assert (details.attempt_count, details.error_code, details.worker) == (1, None, "one")
    assert details.result_summary == "Done in 0.0 s. 3 files deleted, 3 MiB."
    assert [each.version for each in await small.service.history(task_id)] == [1, 2, 3, 4]


async def test_a_job_that_needs_nothing_has_run_all_the_same(small: SmallDelegation) -> None:
    async def step(context: JobContext) -> ExecutionResult:
        return ExecutionResult(1, 2)

    small.job.script = [step]

    task_id = await run_once(small)

    assert await small.statuses(task_id) == [S.SUBMITTED, S.ACQUIRING_RESOURCES, S.RUNNING, S.SUCCESS]


async def test_a_submitted_task_is_begun_without_waiting_for_the_poll(small: SmallDelegation) -> None:
    await small.start_worker()
    await small.settle()

    task_id = (await small.service.submit(make_order())).task_id
    await small.settle()  # no time passes

    assert await small.status(task_id) is S.SUCCESS


async def test_a_task_of_another_instance_is_found_by_polling(small: SmallDelegation) -> None:
    await small.start_worker()
    await small.settle()
    task_id = (await small.make_service().submit(make_order())).task_id
    await small.settle()
    assert await small.status(task_id) is S.SUBMITTED

    await small.advance(5 * 1.25)

    assert await small.status(task_id) is S.SUCCESS


LITERAL = {
    TaskType.TABLE_PURGE: [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600],
    TaskType.DATA_COMPACTION: [30, 60, 120, 240],
}
"""The proposal: 10 attempts from a minute for purges, 5 from 30 s for others; doubled, an hour at most."""


@pytest.mark.parametrize("task_type", list(LITERAL))
async def test_a_passing_trouble_is_tried_again_by_the_defaults_of_the_proposal(task_type: TaskType) -> None:
    small = SmallDelegation()
    small.job._task_type = task_type
    small.service = small.make_service()
    small.job.script = [stumble(StorageUnavailable("The storage is away"))]
    task_id = (await small.service.submit(make_order(task_type=task_type))).task_id
    await small.start_worker()
    await small.settle()
    waits: list[int] = []
    while (details := await small.details(task_id)).status is S.RETRY_SCHEDULED:
        assert details.next_scheduled_run_ts is not None
        waits.append(round((details.next_scheduled_run_ts - details.last_status_change_ts).total_seconds()))
        assert details.attempt_count == len(waits)
        await small.advance(waits[-1] + 1)

    assert waits == LITERAL[task_type]
    assert (details.status, details.attempt_count) == (S.FAILURE, len(waits) + 1)
    assert details.error_code == "STORAGE_UNAVAILABLE"
    assert len(small.job.attempts) == len(waits) + 1
    await small.close()


async def test_a_task_is_not_tried_before_its_time(small: SmallDelegation) -> None:
    small.job.script = [stumble(Unavailable("Away")), succeed()]
    task_id = await run_once(small)

    await small.advance(59)
    assert len(small.job.attempts) == 1
    await small.advance(3)

    assert await small.statuses(task_id) == [
        S.SUBMITTED,
        S.ACQUIRING_RESOURCES,
        S.RUNNING,
        S.RETRY_SCHEDULED,
        S.ACQUIRING_RESOURCES,
        S.RUNNING,
        S.SUCCESS,
    ]
    assert (await small.details(task_id)).error_code is None


PASSING: list[tuple[CynosureError, str]] = [
    (Unavailable("Away"), "UNAVAILABLE"),
    (Contended("Too many"), "CONTENDED"),
    (StorageUnavailable("Away"), "STORAGE_UNAVAILABLE"),
    (OutcomeUnknown("Who knows"), "OUTCOME_UNKNOWN"),
    (JobPostponed("Writers are active", code="WRITERS_ACTIVE"), "WRITERS_ACTIVE"),
    (StorageRefused("Credentials have ended"), "STORAGE_REFUSED"),
]


@pytest.mark.parametrize(("error", "code"), PASSING)
async def test_these_troubles_pass(small: SmallDelegation, error: CynosureError, code: str) -> None:
    small.job.script = [stumble(error)]

    details = await small.details(await run_once(small))

    assert (details.status, details.error_code) == (S.RETRY_SCHEDULED, code)
    assert details.result_summary == str(error)


LASTING: list[tuple[CynosureError, str, int]] = [
    (JobFailed("Another table", code="TABLE_MISMATCH", status=409), "TABLE_MISMATCH", 409),
    (NotFound("No tombstone"), "NOT_FOUND", 409),
    (Conflict("Shared"), "CONFLICT", 409),
    (BadInput("Bad", field="x", fix="y"), "BAD_INPUT", 400),
    (Forbidden("No right"), "CREDENTIAL_VENDING_FAILED", 502),
    (CynosureError("Whatever"), "CYNOSURE_ERROR", 500),
]


@pytest.mark.parametrize(("error", "code", "status"), LASTING)
async def test_these_troubles_last(
    small: SmallDelegation, error: CynosureError, code: str, status: int
) -> None:
    small.job.script = [stumble(error)]

    details = await small.details(await run_once(small))
    await small.advance(7200)

    assert (details.status, details.error_code, status_of(details)) == (S.FAILURE, code, status)
    assert len(small.job.attempts) == 1


ACQUIRING: list[tuple[CynosureError, TaskStatus, str]] = [
    (NotAuthenticated("Unknown client"), S.FAILURE, "CREDENTIAL_VENDING_FAILED"),
    (Forbidden("No right"), S.FAILURE, "CREDENTIAL_VENDING_FAILED"),
    (StorageRefused("No access"), S.FAILURE, "CREDENTIAL_VENDING_FAILED"),
    (Unavailable("The catalog is away"), S.RETRY_SCHEDULED, "CREDENTIAL_VENDING_FAILED"),
    (StorageUnavailable("The storage is away"), S.RETRY_SCHEDULED, "STORAGE_UNAVAILABLE"),
]


@pytest.mark.parametrize(("error", "status", "code"), ACQUIRING)
async def test_trouble_with_credentials_has_a_code_of_its_own(
    small: SmallDelegation, error: CynosureError, status: TaskStatus, code: str
) -> None:
    small.job.script = [stumble(error, is_begun=False)]

    details = await small.details(await run_once(small))

    assert (details.status, details.error_code, details.is_begun) == (status, code, False)
    assert status_of(details) == 502
    assert await small.statuses(details.task_id) == [S.SUBMITTED, S.ACQUIRING_RESOURCES, status]


async def test_an_error_that_nobody_expects_is_tried_again_and_tells_no_secret(
    small: SmallDelegation, caplog: pytest.LogCaptureFixture
) -> None:
    small.job.script = [stumble(RuntimeError("https://bucket/x?X-Amz-Signature=not-for-anybody"))]

    task_id = await run_once(small)

    details = await small.details(task_id)
    assert (details.status, details.error_code) == (S.RETRY_SCHEDULED, "UNEXPECTED")
    kept = f"{details.result_summary} {details.result_extended}"
    assert "RuntimeError" in kept
    assert "small_delegation.py" in kept  # where it was raised
    assert "not-for-anybody" not in kept
    assert "task.unexpected_error" in caplog.messages


async def test_what_is_kept_of_an_error_is_bounded_and_can_be_read(small: SmallDelegation) -> None:
    details = {f"path{number}": ["x" * 1_000] * 50 for number in range(50)}
    small.job.script = [stumble(JobFailed("y" * 100_000, code="BIG", status=409, fix="z", **details))]

    found = await small.details(await run_once(small))

    assert len(found.result_summary or "") <= 2_000
    assert len(found.result_extended or "") <= 20_000
    assert msgspec.json.decode(found.result_extended or "")["type"] == "JobFailed"
    assert status_of(found) == 409


async def test_what_was_done_before_a_failure_is_told(small: SmallDelegation) -> None:
    async def step(context: JobContext) -> ExecutionResult:
        await context.begin()
        await context.mark_begun()
        await context.put_receipts([Receipt("a", 10, 100, 1), Receipt("b", 5, 50, 2)])
        raise JobFailed("A manifest is corrupt", code="CORRUPT_MANIFEST", result={"unreadable": ["m1"]})

    small.job.script = [step]

    details = await small.details(await run_once(small))

    assert details.execution_result == ExecutionResult(15, 150, {"unreadable": ["m1"]})
    assert details.is_begun


async def test_the_next_attempt_finds_what_was_done(small: SmallDelegation) -> None:
    async def first(context: JobContext) -> ExecutionResult:
        await context.begin()
        await context.mark_begun()
        await context.put_receipts([Receipt("a", 10, 100, 1)])
        raise Unavailable("Away")

    async def second(context: JobContext) -> ExecutionResult:
        await context.begin()
        receipts = await context.receipts()
        assert set(receipts.by_batch) == {"a"}
        assert context.attempt == 2
        return ExecutionResult(receipts.files, receipts.bytes)

    small.job.script = [first, second]
    task_id = await run_once(small)
    waiting = await small.details(task_id)
    assert (waiting.is_begun, waiting.execution_result.files_deleted) == (True, 10)

    await small.advance(62)

    assert (await small.details(task_id)).execution_result == ExecutionResult(10, 100)


async def test_progress_is_seen_while_it_runs_and_not_after(small: SmallDelegation) -> None:
    gate = Gate()

    async def step(context: JobContext) -> ExecutionResult:
        await context.report(TaskProgress("deleting", 5, 10))
        return await gate(context)

    small.job.script = [step]
    task_id = await run_once(small)

    assert (await small.details(task_id)).progress == TaskProgress("deleting", 5, 10)
    gate.opened.set()
    await small.settle()

    assert (await small.details(task_id)).progress is None


async def test_a_job_that_cancels_itself_is_tried_again_later(small: SmallDelegation) -> None:
    async def step(context: JobContext) -> ExecutionResult:
        raise asyncio.CancelledError

    small.job.script = [step]

    details = await small.details(await run_once(small))

    assert (details.status, details.error_code) == (S.RETRY_SCHEDULED, "UNEXPECTED")
    assert len(small.job.attempts) == 1


async def test_a_schedule_begins_again_at_its_next_time(small: SmallDelegation) -> None:
    small.job.script = [succeed(files=1), succeed(files=2)]
    task_id = (await small.service.submit(make_order(schedule="PT1H"))).task_id
    await small.start_worker()
    await small.settle()
    waiting = await small.details(task_id)
    assert await small.statuses(task_id) == [
        S.SUBMITTED,
        S.ACQUIRING_RESOURCES,
        S.RUNNING,
        S.SUCCESS,
        S.SUBMITTED,
    ]
    assert waiting.next_scheduled_run_ts == waiting.last_status_change_ts + timedelta(hours=1)
    await small.advance(3599)
    assert len(small.job.attempts) == 1

    await small.advance(10)

    assert len(small.job.attempts) == 2
    assert (await small.details(task_id)).execution_result.files_deleted == 2


async def test_a_cron_line_is_kept_the_first_time_too(small: SmallDelegation) -> None:
    task_id = (await small.service.submit(make_order(schedule="30 0 * * *"))).task_id
    await small.start_worker()
    await small.advance(29 * 60)
    assert small.job.attempts == []

    await small.advance(2 * 60)

    assert len(small.job.attempts) == 1
    following = (await small.details(task_id)).next_scheduled_run_ts
    assert following is not None
    assert following.isoformat() == "2026-01-02T00:30:00+00:00"


async def test_the_catalog_is_told_of_the_end_if_it_wants_to_be() -> None:
    small = SmallDelegation(DelegationSettings(service=ServiceSettings(callback=True)))
    small.job.script = [stumble(Unavailable("Away")), succeed(), stumble(JobFailed("No", code="NO"))]

    first = await run_once(small)
    assert small.catalog.told == []
    await small.advance(62)
    assert small.catalog.told == [first]

    small.catalog.refusal = Unavailable("The catalog is away")
    second = (await small.service.submit(make_order("other"))).task_id
    await small.settle()

    assert await small.status(second) is S.FAILURE
    await small.close()


async def test_nobody_is_told_by_default(small: SmallDelegation) -> None:
    await run_once(small)

    assert small.catalog.told == []


async def test_a_task_that_nobody_here_can_do_waits_for_who_can(small: SmallDelegation) -> None:
    order = make_order(task_type=TaskType.DATA_COMPACTION)
    other = SmallDelegation(store=small.store)
    other.job._task_type = TaskType.DATA_COMPACTION
    task_id = (await other.make_service().submit(order)).task_id

    await small.start_worker()
    await small.settle()

    details = await small.details(task_id)
    assert (details.status, details.error_code) == (S.RETRY_SCHEDULED, "NO_SUCH_JOB")
