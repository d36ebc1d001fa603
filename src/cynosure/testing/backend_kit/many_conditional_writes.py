"""Many conditional writes in one call: each has its own outcome, and none binds another."""

import asyncio
import random
from collections import Counter

import pytest

from cynosure.common.errors import BadInput, TooLarge
from cynosure.persistence.spi import Backend, ConditionalWrite, DeleteIf, Insert, Swap
from cynosure.testing.backend_kit.fixtures import KitFixtures, OpenHandle
from cynosure.testing.backend_kit.samples import fetch_row, fixed, obj_key, versioned

RELAXED = pytest.mark.parametrize("is_relaxed", [False, True], ids=["strict", "relaxed"])


def lease(id_: int) -> DeleteIf:
    """The deletion of a version "a"."""
    return DeleteIf(versioned(id_, "a").key, "a")


class ManyConditionalWriteTests(KitFixtures):
    @RELAXED
    async def test_each_write_of_a_call_has_the_outcome_it_would_have_alone(
        self, backend: Backend, other: Backend, is_relaxed: bool
    ) -> None:
        for id_ in (2, 3, 4, 5, 6):
            await backend.insert(versioned(id_, "a"))
        writes: list[ConditionalWrite] = [
            DeleteIf(versioned(6, "a").key, "b"),
            Insert(versioned(1, "n", b"new", created_us=9)),
            Insert(versioned(2, "n")),
            Swap(versioned(3, "n", b"next", created_us=9), "a"),
            lease(5),
            Swap(versioned(4, "n"), "b"),
            Swap(versioned(7, "n"), "a"),
            DeleteIf(versioned(8, "a").key, "a"),
        ]

        outcomes = await backend.write_each(writes, is_relaxed=is_relaxed)

        assert outcomes == [False, True, False, True, True, False, False, False]
        assert await other.fetch([versioned(id_, "a").key for id_ in range(1, 9)]) == [
            versioned(1, "n", b"new", created_us=9),
            versioned(2, "a"),
            versioned(3, "n", b"next", created_us=9),
            versioned(4, "a"),
            None,
            versioned(6, "a"),
            None,
            None,
        ]

    @RELAXED
    async def test_writes_of_one_kind_are_answered_in_their_order(
        self, backend: Backend, is_relaxed: bool
    ) -> None:
        ids = [9, 2, 7, 4, 5, 1]
        await backend.insert(versioned(7, "other"))

        inserted = await backend.write_each(
            [Insert(versioned(id_, "a")) for id_ in ids], is_relaxed=is_relaxed
        )
        swapped = await backend.write_each(
            [Swap(versioned(id_, "b", b"%d" % id_), "a") for id_ in ids], is_relaxed=is_relaxed
        )
        deleted = await backend.write_each(
            [DeleteIf(versioned(id_, "b").key, "a" if id_ == 4 else "b") for id_ in ids],
            is_relaxed=is_relaxed,
        )

        assert inserted == swapped == [True, True, False, True, True, True]
        assert deleted == [True, True, False, False, True, True]
        assert await backend.fetch([versioned(id_, "b").key for id_ in (4, 7)]) == [
            versioned(4, "b", b"4"),
            versioned(7, "other"),
        ]

    async def test_a_call_without_writes_says_nothing(self, backend: Backend) -> None:
        assert await backend.write_each([]) == []
        assert await backend.write_each([], is_relaxed=True) == []

    async def test_one_write_is_enough(self, backend: Backend) -> None:
        assert await backend.write_each([Insert(versioned(1, "a"))]) == [True]
        assert await backend.write_each([Insert(versioned(1, "b"))]) == [False]
        assert await backend.write_each([Swap(versioned(1, "b"), "a")], is_relaxed=True) == [True]
        assert await backend.write_each([DeleteIf(versioned(1, "a").key, "b")], is_relaxed=True) == [True]

        assert await fetch_row(backend, versioned(1, "a").key) is None

    async def test_immutable_rows_are_not_changed_by_any_of_many(self, backend: Backend) -> None:
        await backend.write([fixed(1), fixed(2), fixed(3)])
        changed = [fixed(id_, b"changed")._replace(token="b") for id_ in (1, 2)]

        outcomes = await backend.write_each(
            [Insert(changed[0]), Swap(changed[1], "a"), DeleteIf(obj_key(3), "a")]
        )

        assert outcomes == [False, False, False]
        assert await backend.fetch([obj_key(id_) for id_ in (1, 2, 3)]) == [fixed(1), fixed(2), fixed(3)]

    async def test_a_call_that_writes_a_row_twice_is_refused_as_a_whole(self, backend: Backend) -> None:
        with pytest.raises(BadInput):
            await backend.write_each(
                [Insert(versioned(1, "a")), Insert(versioned(2, "a")), Swap(versioned(1, "b"), "a")]
            )

        assert await backend.fetch([versioned(id_, "a").key for id_ in (1, 2)]) == [None, None]

    async def test_one_write_that_cannot_be_stored_refuses_the_call_before_anything_is_sent(
        self, backend: Backend
    ) -> None:
        good = Insert(versioned(1, "a"))
        large = b"x" * (backend.limits.row_bytes + 1)

        for bad in (Insert(versioned(2, "")), Swap(versioned(2, "b"), ""), DeleteIf(obj_key(2), "\0")):
            with pytest.raises(BadInput):
                await backend.write_each([good, bad])
        with pytest.raises(TooLarge):
            await backend.write_each([good, Insert(versioned(2, "a", large))])

        assert await fetch_row(backend, good.key) is None

    async def test_many_large_rows_are_written_in_one_call(self, backend: Backend, other: Backend) -> None:
        blob = b"x" * min(backend.limits.row_bytes, 300_000)
        rows = [versioned(id_, "a", blob + b"" if id_ % 2 else b"") for id_ in range(1, 41)]

        assert await backend.write_each([Insert(row) for row in rows]) == [True] * 40

        assert await other.fetch([row.key for row in rows]) == rows

    @RELAXED
    async def test_of_racing_calls_exactly_one_wins_each_row(
        self, backend: Backend, other: Backend, is_relaxed: bool
    ) -> None:
        ids = range(1, 13)
        for id_ in ids[::2]:
            await backend.insert(versioned(id_, "start"))

        async def race(racer: int) -> list[bool]:
            # Each in another order, so that a backend that locks as it is told would lock against others.
            order = list(ids)
            random.Random(racer).shuffle(order)
            writes: list[ConditionalWrite] = []
            for id_ in order:
                row = versioned(id_, f"racer {racer}")
                if id_ % 2 == 0:
                    writes.append(Insert(row))
                elif (id_ + racer) % 3:
                    writes.append(Swap(row, "start"))
                else:
                    writes.append(DeleteIf(row.key, "start"))
            handle = other if racer % 2 else backend
            outcomes = await handle.write_each(writes, is_relaxed=is_relaxed)
            return [dict(zip(order, outcomes, strict=True))[id_] for id_ in ids]

        won = await asyncio.gather(*(race(racer) for racer in range(8)))

        assert [sum(column) for column in zip(*won, strict=True)] == [1] * len(ids)
        for at, id_ in enumerate(ids):
            winner = [outcomes[at] for outcomes in won].index(True)
            row = await fetch_row(backend, versioned(id_, "x").key)
            is_deleted = id_ % 2 == 1 and (id_ + winner) % 3 == 0
            assert (None if row is None else row.token) == (None if is_deleted else f"racer {winner}")

    @RELAXED
    async def test_calls_of_many_and_calls_of_one_form_one_chain_of_versions(
        self, backend: Backend, other: Backend, is_relaxed: bool
    ) -> None:
        made: list[str] = []
        ended: list[str] = []
        keys = [versioned(id_, "x").key for id_ in range(1, 5)]

        async def work(worker: int) -> None:
            rng = random.Random(worker)
            for number in range(10):
                handle = rng.choice((backend, other))
                writes: list[ConditionalWrite] = []
                for row, key in zip(await handle.fetch(keys), keys, strict=True):
                    new = versioned(key.id, f"{worker}-{number}-{key.id}")
                    if row is None:
                        writes.append(Insert(new))
                    elif rng.random() < 0.3:
                        writes.append(DeleteIf(key, row.token))
                    else:
                        writes.append(Swap(new, row.token))
                rng.shuffle(writes)
                for write, is_won in await apply(handle, writes, one_by_one=worker == 0):
                    if is_won and not isinstance(write, DeleteIf):
                        made.append(write.row.token)
                    if is_won and not isinstance(write, Insert):
                        ended.append(write.expected_token)

        async def apply(
            handle: Backend, writes: list[ConditionalWrite], *, one_by_one: bool
        ) -> list[tuple[ConditionalWrite, bool]]:
            if one_by_one:
                outcomes = [(await handle.write_each([write]))[0] for write in writes]
            else:
                outcomes = await handle.write_each(writes, is_relaxed=is_relaxed)
            return list(zip(writes, outcomes, strict=True))

        await asyncio.gather(*(work(worker) for worker in range(5)))

        # Every version was ended once, by who won it, except those that are there now.
        last = [row.token for row in await backend.fetch(keys) if row is not None]
        assert Counter(made) == Counter([*ended, *last])

    async def test_what_was_acknowledged_relaxed_is_seen_by_all_and_there_after_reopening(
        self, open_handle: OpenHandle, other: Backend
    ) -> None:
        handle = open_handle()
        if not handle.limits.is_durable:
            await handle.close()
            pytest.skip("this backend declares that it is not durable")
        for number in range(10):
            before, after = f"t{number}", f"t{number + 1}"
            write = Swap(versioned(1, after), before) if number else Insert(versioned(1, after))
            assert await handle.write_each([write, Insert(versioned(100 + number, "a"))], is_relaxed=True)
            assert await fetch_row(other, versioned(1, "x").key) == versioned(1, after)
        await handle.close()

        again = open_handle()

        assert await fetch_row(again, versioned(1, "x").key) == versioned(1, "t10")
        assert None not in await again.fetch([versioned(100 + number, "a").key for number in range(10)])
        await again.close()

    async def test_relaxed_and_strict_writes_mix_in_any_order(self, backend: Backend, other: Backend) -> None:
        async def write(number: int) -> list[bool]:
            handle = other if number % 3 == 0 else backend
            rows = [versioned(10 * number + at, "a") for at in range(3)]
            return await handle.write_each([Insert(row) for row in rows], is_relaxed=number % 2 == 0)

        outcomes = await asyncio.gather(*(write(number) for number in range(1, 40)))

        assert outcomes == [[True] * 3] * 39
        keys = [versioned(10 * number + at, "a").key for number in range(1, 40) for at in range(3)]
        assert None not in await other.fetch(keys)

    @pytest.mark.parametrize("ticks", [0, 1, 2, 4, 16])
    async def test_a_cancelled_call_of_many_leaves_whole_rows_and_others_served(
        self, backend: Backend, other: Backend, ticks: int
    ) -> None:
        rows = [versioned(id_, "a", b"%d" % id_ * 100) for id_ in range(1, 9)]
        call = asyncio.ensure_future(backend.write_each([Insert(row) for row in rows]))
        for _ in range(ticks):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])

        # Its outcome is unknown, so another writer goes on: of both, one wins each row for good.
        won = await other.write_each([Insert(row._replace(token="b")) for row in rows])

        expected = [row._replace(token="b") if is_won else row for row, is_won in zip(rows, won, strict=True)]
        assert await backend.fetch([row.key for row in rows]) == expected
        assert await backend.write_each([Insert(versioned(99, "a"))], is_relaxed=True) == [True]
