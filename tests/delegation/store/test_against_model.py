"""Anything that workers, operators and clocks do, beside a model that is too simple to be wrong.

The store is the real one, on the memory backend; PostgreSQL's answers are compared with it by the kit.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.store.port import Leased, Receipt, TaskFilter, TaskStore
from cynosure.delegation.task_record import TaskRecord
from cynosure.delegation.transitions import (
    cancelled,
    failed,
    resubmitted,
    retry_scheduled,
    running,
    succeeded,
)
from cynosure.testing.task_store_kit.samples import after, id_of, new

T = TypeVar("T")
NAMES = ["a", "b", "c", "d"]
WORKERS = ["w1", "w2"]
LEASE_S = 10


class Model:
    """Tasks in a dictionary: the history of each, the end of its lease, its receipts."""

    def __init__(self) -> None:
        self.history: dict[str, list[TaskRecord]] = {}
        self.until_us: dict[str, int] = {}
        self.receipts: dict[str, dict[str, int]] = {}

    def ready(self, task_id: str) -> int | None:
        newest = self.history[task_id][-1]
        if newest.status.is_terminal:
            return None
        if newest.status.is_leased:
            return self.until_us[task_id]
        return newest.next_scheduled_run_us or newest.last_status_change_us

    def next(self, now_us: int) -> str | None:
        waiting = [(ready, task) for task in self.history if (ready := self.ready(task)) is not None]
        passed = [each for each in waiting if each[0] <= now_us]
        return min(passed)[1] if passed else None

    def holds(self, leased: Leased) -> bool:
        task_id = leased.record.task_id
        versions = self.history.get(task_id)
        return (
            versions is not None
            and versions[-1].status.is_leased
            and versions[-1].lease_token == leased.record.lease_token
            and self.until_us[task_id] > 0
        )


class TaskStoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.model = Model()
        self.now_s = 0
        self.leases: list[Leased] = []
        """All that were ever had, also those that were lost."""
        self.opened: AbstractAsyncContextManager[TaskStore] = open_task_store("memory:", "default")
        self.store: TaskStore = self.do(self.opened.__aenter__())

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    def teardown(self) -> None:
        self.do(self.opened.__aexit__(None, None, None))
        self.loop.close()

    @property
    def now_us(self) -> int:
        return after(self.now_s)

    @initialize()
    def begin(self) -> None:
        self.submit("a", 0)

    @rule(seconds=st.integers(0, 15))
    def pass_time(self, seconds: int) -> None:
        self.now_s += seconds

    @rule(name=st.sampled_from(NAMES), delay=st.sampled_from([0, 0, 7]))
    def submit(self, name: str, delay: int) -> None:
        record = new(name, at=self.now_s, first_run=after(self.now_s + delay) if delay else 0)

        kept = self.do(self.store.insert(record))

        versions = self.model.history.setdefault(record.task_id, [record])
        assert kept == versions[-1]

    @rule(worker=st.sampled_from(WORKERS))
    def lease(self, worker: str) -> None:
        expected = self.model.next(self.now_us)

        leased = self.do(self.store.lease(worker, now_us=self.now_us, lease_us=LEASE_S * 1_000_000))

        if expected is None:
            assert leased is None
            return
        assert leased is not None
        before = self.model.history[expected][-1]
        assert leased.record.task_id == expected
        assert leased.record.attempt_count == before.attempt_count + 1
        assert (leased.found == "lost") == before.status.is_leased
        assert all(leased.record.lease_token != each.record.lease_token for each in self.leases)
        self.model.history[expected].append(leased.record)
        self.model.until_us[expected] = leased.lease_until_us
        self.leases.append(leased)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def keep(self, data: st.DataObject) -> None:
        leased = data.draw(st.sampled_from(self.leases))
        task_id = leased.record.task_id
        is_ours = self.model.holds(leased) and self.model.until_us[task_id] > self.now_us

        kept = self.do(self.store.keep(leased, now_us=self.now_us, lease_us=LEASE_S * 1_000_000))

        assert (kept is not None) == is_ours
        if kept is not None:
            self.model.until_us[task_id] = kept.lease_until_us

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), batch=st.sampled_from(["x", "y"]), files=st.integers(1, 9))
    def put_receipt(self, data: st.DataObject, batch: str, files: int) -> None:
        leased = data.draw(st.sampled_from(self.leases))

        is_kept = self.do(self.store.put_receipts(leased, [Receipt(batch, files, 1, self.now_us)]))

        assert is_kept == self.model.holds(leased)
        if is_kept:
            self.model.receipts.setdefault(leased.record.task_id, {}).setdefault(batch, files)

    @rule(
        data=st.data(), what=st.sampled_from(["run", "done", "again", "retry", "fail", "cancel", "resubmit"])
    )
    def change(self, data: st.DataObject, what: str) -> None:
        """Of any version that there ever was: only the newest can be changed."""
        versions = [each for history in self.model.history.values() for each in history]
        expected = data.draw(st.sampled_from(versions))
        now_us = self.now_us
        wanted = {
            "run": {TaskStatus.ACQUIRING_RESOURCES},
            "done": {TaskStatus.RUNNING},
            "again": {TaskStatus.RUNNING},
            "retry": {TaskStatus.ACQUIRING_RESOURCES, TaskStatus.RUNNING},
            "fail": {TaskStatus.ACQUIRING_RESOURCES, TaskStatus.RUNNING},
            "cancel": {each for each in TaskStatus if not each.is_terminal},
            "resubmit": {TaskStatus.FAILURE, TaskStatus.RETRY_SCHEDULED},
        }
        if expected.status not in wanted[what]:
            return
        make = {
            "run": lambda: running(expected, now_us=now_us),
            "done": lambda: succeeded(expected, now_us=now_us, result=ExecutionResult(1)),
            "again": lambda: succeeded(
                expected, now_us=now_us, result=ExecutionResult(1), next_run_us=now_us + 5
            ),
            "retry": lambda: retry_scheduled(
                expected, now_us=now_us, due_us=now_us + 3, code="X", summary="x"
            ),
            "fail": lambda: failed(expected, now_us=now_us, code="X", summary="x"),
            "cancel": lambda: cancelled(expected, now_us=now_us),
            "resubmit": lambda: resubmitted(expected, now_us=now_us),
        }
        record = make[what]()

        swapped = self.do(self.store.swap(expected, record))

        history = self.model.history[expected.task_id]
        assert (swapped is not None) == (history[-1] == expected)
        if swapped is not None:
            history.append(record)
            if what == "again":
                history.append(swapped)
                self.model.receipts.pop(expected.task_id, None)

    @rule(worker=st.sampled_from(WORKERS))
    def release(self, worker: str) -> None:
        lost = [
            task
            for task, history in self.model.history.items()
            if history[-1].status.is_leased and history[-1].worker == worker and self.model.until_us[task]
        ]

        assert self.do(self.store.release(worker)) == len(lost)

        self.model.until_us.update(dict.fromkeys(lost, 0))

    @rule(age_s=st.integers(0, 20))
    def forget(self, age_s: int) -> None:
        before_us = after(self.now_s - age_s)
        old = [
            task
            for task, history in self.model.history.items()
            if history[-1].status.is_terminal and history[-1].last_status_change_us < before_us
        ]
        if len(old) == len(self.model.history):
            return  # Something stays to be changed.

        assert self.do(self.store.forget(before_us)) == len(old)

        for task in old:
            del self.model.history[task]
            self.model.receipts.pop(task, None)
            self.leases = [each for each in self.leases if each.record.task_id != task]

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        for task_id, history in self.model.history.items():
            assert self.do(self.store.history(task_id)) == history
            assert self.do(self.store.find(task_id)) == history[-1]
            kept = self.do(self.store.receipts(task_id)).by_batch
            assert {batch: each.files for batch, each in kept.items()} == self.model.receipts.get(task_id, {})
        listed, token = self.do(self.store.list(TaskFilter(), limit=10))
        newest = [history[-1] for history in self.model.history.values()]
        assert list(listed) == sorted(newest, key=lambda each: (-each.created_us, each.task_id))
        assert token is None
        waiting = [
            self.model.ready(task)
            for task, history in self.model.history.items()
            if history[-1].status in (TaskStatus.SUBMITTED, TaskStatus.RETRY_SCHEDULED)
        ]
        due = [each for each in waiting if each is not None]
        assert self.do(self.store.next_due_us()) == (min(due) if due else None)
        assert set(self.model.history) <= {id_of(name) for name in NAMES}


TestTaskStoreMachine = TaskStoreMachine.TestCase
TestTaskStoreMachine.settings = settings(max_examples=40, stateful_step_count=30)
