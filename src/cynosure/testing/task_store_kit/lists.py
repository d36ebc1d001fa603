"""Lists of tasks: the newest first, filtered, in pages; sub-tasks, the oldest first."""

import json
from base64 import urlsafe_b64encode

import pytest

from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import BadPageToken
from cynosure.delegation.store.port import TaskFilter, TaskStore
from cynosure.testing.task_store_kit.fixtures import KitFixtures
from cynosure.testing.task_store_kit.samples import finish, id_of, lease, new

EVERYTHING = TaskFilter()
STRANGE_TOKENS = ["x", "", "e30", "WzEsMl0", "é", "WzEsIm5vIHV1aWQiXQ=!", "W" * 5_000] + [
    urlsafe_b64encode(json.dumps(place).encode()).decode()
    for place in ([1, "no uuid"], [-1, id_of("a")], [1 << 61, id_of("a")], [1 << 90, id_of("a")], [1])
]


async def names(store: TaskStore, wanted: TaskFilter = EVERYTHING, *, limit: int = 100) -> list[str]:
    """All tasks of a list, page by page."""
    found: list[str] = []
    token: str | None = None
    while True:
        page, token = await store.list(wanted, limit=limit, after=token)
        assert len(page) <= limit
        found += [each.correlation_id for each in page]
        if token is None:
            return found
        assert len(page) == limit


class ListTests(KitFixtures):
    async def test_an_empty_store_lists_nothing(self, store: TaskStore) -> None:
        assert await names(store) == []

    @pytest.mark.parametrize("limit", [1, 3, 7, 8])
    async def test_the_newest_come_first_whatever_the_size_of_a_page(
        self, store: TaskStore, limit: int
    ) -> None:
        for number in (3, 1, 6, 0, 2, 5, 4):
            await store.insert(new(f"task {number}", at=number))

        assert await names(store, limit=limit) == [f"task {number}" for number in range(6, -1, -1)]

    async def test_tasks_of_the_same_moment_are_all_listed_once(self, store: TaskStore) -> None:
        made = [f"task {number}" for number in range(9)]
        for name in made:
            await store.insert(new(name))

        listed = await names(store, limit=2)

        assert sorted(listed) == made
        assert listed == sorted(made, key=id_of)

    async def test_a_page_goes_on_where_the_one_before_ended_whatever_was_submitted_meanwhile(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        for number in range(4):
            await store.insert(new(f"task {number}", at=number))
        page, token = await store.list(EVERYTHING, limit=2)
        await store.insert(new("newer", at=9))

        rest, end = await other.list(EVERYTHING, limit=2, after=token)

        assert [each.correlation_id for each in (*page, *rest)] == ["task 3", "task 2", "task 1", "task 0"]
        assert end is None

    async def test_lists_show_what_was_asked_for(self, store: TaskStore) -> None:
        await store.insert(new("done", at=0))
        await finish(store, "done", at=1)
        await store.insert(new("leased", at=2, catalog="pond"))
        await lease(store, at=3)
        await store.insert(new("expiry", at=4, task_type=TaskType.SNAPSHOT_EXPIRY))
        await store.insert(new("waiting", at=5))

        assert await names(store, TaskFilter(status=TaskStatus.SUCCESS)) == ["done"]
        assert await names(store, TaskFilter(status=TaskStatus.SUBMITTED), limit=1) == ["waiting", "expiry"]
        assert await names(store, TaskFilter(task_type=TaskType.SNAPSHOT_EXPIRY)) == ["expiry"]
        assert await names(store, TaskFilter(catalog="pond")) == ["leased"]
        assert await names(store, TaskFilter(TaskStatus.SUBMITTED, TaskType.TABLE_PURGE, "lake")) == [
            "waiting"
        ]
        assert await names(store, TaskFilter(catalog="sea")) == []

    async def test_a_list_has_the_newest_version_of_each(self, store: TaskStore, other: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)

        (record,), _ = await other.list(EVERYTHING, limit=5)

        assert record == leased.record

    @pytest.mark.parametrize("token", STRANGE_TOKENS)
    async def test_a_page_token_that_is_none_of_ours_is_refused(self, store: TaskStore, token: str) -> None:
        await store.insert(new("a"))

        with pytest.raises(BadPageToken) as refused:
            await store.list(EVERYTHING, limit=5, after=token)

        assert refused.value.fix

    async def test_sub_tasks_are_found_by_their_parent(self, store: TaskStore, other: TaskStore) -> None:
        await store.insert(new("parent"))
        await store.insert(new("second", at=2, parent="parent"))
        await store.insert(new("first", at=1, parent="parent"))
        await store.insert(new("other", at=1, parent="another"))

        children = await other.children(id_of("parent"))

        assert [each.correlation_id for each in children] == ["first", "second"]
        assert {each.parent_id for each in children} == {id_of("parent")}
        assert list(await store.children(id_of("first"))) == []
