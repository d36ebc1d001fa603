"""Every pair of states, and what each change of a task does to it."""

from collections.abc import Callable
from itertools import product

import pytest
from msgspec.structs import replace

from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import BadInput, Conflict
from cynosure.delegation.task_record import TaskRecord
from cynosure.delegation.transitions import (
    CANCELLED,
    TRANSITIONS,
    Cause,
    begun,
    cancelled,
    check_transition,
    failed,
    follow_up,
    given_back,
    leased,
    resubmitted,
    retry_scheduled,
    running,
    submitted,
    succeeded,
)
from cynosure.testing.task_store_kit.samples import after, new, order

S = TaskStatus
PROPOSED = {
    (S.SUBMITTED, S.ACQUIRING_RESOURCES),
    (S.SUBMITTED, S.RUNNING),
    (S.ACQUIRING_RESOURCES, S.RUNNING),
    (S.ACQUIRING_RESOURCES, S.RETRY_SCHEDULED),
    (S.ACQUIRING_RESOURCES, S.FAILURE),
    (S.RUNNING, S.SUCCESS),
    (S.RUNNING, S.RETRY_SCHEDULED),
    (S.RUNNING, S.FAILURE),
    (S.RETRY_SCHEDULED, S.ACQUIRING_RESOURCES),
    (S.RETRY_SCHEDULED, S.RUNNING),
    (S.SUCCESS, S.SUBMITTED),
}
"""The table of the proposal, pair by pair."""
OPERATOR = {
    (S.SUBMITTED, S.FAILURE),
    (S.ACQUIRING_RESOURCES, S.FAILURE),
    (S.RUNNING, S.FAILURE),
    (S.RETRY_SCHEDULED, S.FAILURE),
    (S.RETRY_SCHEDULED, S.SUBMITTED),
    (S.FAILURE, S.SUBMITTED),
}
LOST = {(S.ACQUIRING_RESOURCES, S.ACQUIRING_RESOURCES), (S.RUNNING, S.ACQUIRING_RESOURCES)}
"""What the proposal says in words: a worker that is gone."""
STAYS = {(S.ACQUIRING_RESOURCES, S.ACQUIRING_RESOURCES), (S.RUNNING, S.RUNNING)}


@pytest.mark.parametrize(("before", "after_"), list(product(S, S)))
def test_every_pair_of_states(before: TaskStatus, after_: TaskStatus) -> None:
    pair = (before, after_)
    if pair in PROPOSED | OPERATOR | LOST | STAYS:
        check_transition(before, after_)
        causes = TRANSITIONS[before][after_]
        assert (Cause.OPERATOR in causes) == (pair in OPERATOR)
        assert (Cause.LOST in causes) == (pair in LOST)
        assert (Cause.SCHEDULE in causes) == (pair == (S.SUCCESS, S.SUBMITTED))
        return
    with pytest.raises(Conflict) as refused:
        check_transition(before, after_)
    assert refused.value.details == {"field": "status", "before": before, "after": after_}
    assert all(each in refused.value.fix for each in TRANSITIONS[before])


def in_state(status: TaskStatus) -> TaskRecord:
    token = "t" if status.is_leased else ""
    return replace(
        new("a"), version=5, status=status, attempt_count=2, lease_token=token, worker="w", is_begun=True
    )


MAKERS: dict[str, tuple[Callable[[TaskRecord], TaskRecord], TaskStatus]] = {
    "leased": (lambda each: leased(each, worker="w2", token="t2", now_us=after(9)), S.ACQUIRING_RESOURCES),
    "running": (lambda each: running(each, now_us=after(9)), S.RUNNING),
    "succeeded": (lambda each: succeeded(each, now_us=after(9), result=ExecutionResult()), S.SUCCESS),
    "retry": (
        lambda each: retry_scheduled(each, now_us=after(9), due_us=after(99), code="X", summary="x"),
        S.RETRY_SCHEDULED,
    ),
    "given back": (lambda each: given_back(each, now_us=after(9), summary="x"), S.RETRY_SCHEDULED),
    "failed": (lambda each: failed(each, now_us=after(9), code="X", summary="x"), S.FAILURE),
    "cancelled": (lambda each: cancelled(each, now_us=after(9)), S.FAILURE),
    "resubmitted": (lambda each: resubmitted(each, now_us=after(9)), S.SUBMITTED),
}


@pytest.mark.parametrize(("name", "before"), list(product(MAKERS, S)))
def test_every_change_of_every_state(name: str, before: TaskStatus) -> None:
    make, status = MAKERS[name]
    record = in_state(before)
    is_begun_without_lease = name == "running" and not before.is_leased
    if status not in TRANSITIONS[before] or is_begun_without_lease:
        with pytest.raises(Conflict):
            make(record)
        return

    made = make(record)

    assert (made.version, made.status, made.last_status_change_us) == (6, status, after(9))
    assert (made.task_id, made.task_payload, made.created_us) == (
        record.task_id,
        record.task_payload,
        record.created_us,
    )
    assert bool(made.lease_token) == status.is_leased
    assert made.is_begun


def test_a_lease_counts_an_attempt_and_names_its_worker() -> None:
    record = replace(in_state(S.RETRY_SCHEDULED), next_scheduled_run_us=after(4))

    made = leased(record, worker="w2", token="t2", now_us=after(9))

    assert (made.attempt_count, made.worker, made.lease_token) == (3, "w2", "t2")
    assert (made.lease_acquired_us, made.next_scheduled_run_us) == (after(9), 0)


def test_what_was_begun_is_marked_without_a_change_of_state() -> None:
    record = replace(in_state(S.RUNNING), is_begun=False)

    made = begun(record)

    assert made == replace(record, version=6, is_begun=True)
    with pytest.raises(Conflict):
        begun(in_state(S.SUBMITTED))


def test_success_takes_back_what_earlier_attempts_complained_about() -> None:
    record = replace(in_state(S.RUNNING), error_code="X", result_summary="x", result_extended="x")

    made = succeeded(record, now_us=after(9), result=ExecutionResult(5), summary="Done")

    assert (made.error_code, made.result_summary, made.result_extended) == (None, "Done", None)
    assert made.execution_result == ExecutionResult(5)
    assert follow_up(made) is None


def test_a_scheduled_task_goes_on_as_new() -> None:
    record = in_state(S.RUNNING)
    made = succeeded(record, now_us=after(9), result=ExecutionResult(5), next_run_us=after(99))

    following = follow_up(made)

    assert following is not None
    assert (following.version, following.status, following.next_scheduled_run_us) == (
        7,
        S.SUBMITTED,
        after(99),
    )
    assert (following.attempt_count, following.is_begun) == (0, False)
    assert following.execution_result == ExecutionResult(5)


def test_a_failure_can_say_what_was_done_before() -> None:
    made = failed(
        in_state(S.RUNNING),
        now_us=after(9),
        code="CORRUPT_MANIFEST",
        summary="x" * 9_999,
        extended="a\0b",
        result=ExecutionResult(7),
    )

    assert (made.error_code, made.execution_result) == ("CORRUPT_MANIFEST", ExecutionResult(7))
    assert made.result_summary is not None
    assert len(made.result_summary) == 2_000
    assert made.result_summary.endswith("…")
    assert made.result_extended == "ab"


def test_giving_back_does_not_count_the_attempt() -> None:
    made = given_back(in_state(S.RUNNING), now_us=after(9), summary="The service stops")

    assert (made.attempt_count, made.next_scheduled_run_us) == (1, after(9))


def test_an_operators_cancel_and_retry() -> None:
    gone = cancelled(in_state(S.RUNNING), now_us=after(9))
    assert gone.error_code == CANCELLED

    again = resubmitted(gone, now_us=after(10))

    assert (again.attempt_count, again.error_code, again.is_begun) == (0, None, True)


def test_a_first_version_is_what_was_ordered() -> None:
    made = submitted(order("a"), now_us=after(1), parent_id="p", first_run_us=after(5))

    assert (made.task_id, made.version, made.status) == (order("a").task_id, 1, S.SUBMITTED)
    assert made.received_us == made.created_us == made.last_status_change_us == after(1)
    assert (made.parent_id, made.next_scheduled_run_us) == ("p", after(5))
    assert (made.fingerprint, made.correlation_id, made.catalog) == (order("a").fingerprint, "a", "lake")


@pytest.mark.parametrize(
    ("name", "catalog", "field"),
    [
        ("a\0b", "lake", "common_payload.polaris_correlation_id"),
        ("a", "la\0ke", "operation_parameters.table_identity.catalog_name"),
    ],
)
def test_names_that_no_database_keeps_are_refused(name: str, catalog: str, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        submitted(order(name, catalog=catalog), now_us=after(1))

    assert refused.value.field == field
