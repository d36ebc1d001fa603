"""Random and concurrent histories, judged by the memory backend or by what a history must add up to."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.spi import Backend, CatalogId, DeleteIf, Insert, Reference, Row, Swap
from cynosure.testing.backend_kit.fixtures import KitFixtures
from cynosure.testing.backend_kit.samples import (
    REF,
    fetch_ref,
    fetch_refs_soon,
    fetch_row,
    fixed,
    obj_key,
    reference,
    scan_all,
    versioned,
)

Step = Callable[[Backend], Awaitable[Any]]

TOKENS = ("a", "b", "c")
IDS = (1, 2, 3, 2**62)
REFS = [REF, REF._replace(name="grants"), REF._replace(catalog=CatalogId("c-2"))]


def random_step(rng: random.Random, number: int) -> Step:
    """One call with arguments that collide often."""
    id_, token, expected = rng.choice(IDS), rng.choice(TOKENS), rng.choice(TOKENS)
    row = versioned(id_, token, rng.randbytes(rng.randrange(40)), created_us=number)
    # Of other rows than `row`: one call writes a row once.
    second_id, third_id = [other for other in IDS if other != id_][:2]
    second, third = versioned(second_id, token, row.blob, created_us=number), versioned(third_id, "x").key
    old = reference(rng.randrange(1, 4), rng.randrange(2), key=rng.choice(REFS))
    new = reference(rng.randrange(1, 4), rng.randrange(2), (old.head,), key=old.key)._replace(
        created_us=number
    )
    # Rows of a lost swap may or may not exist, so these are of a type that nothing compares.
    carried = [fixed(number + 1, type_="carried")]
    steps: list[Step] = [
        lambda backend: backend.fetch([row.key, obj_key(id_)]),
        lambda backend: backend.write([fixed(id_, row.blob)]),
        lambda backend: backend.insert(row),
        lambda backend: backend.swap(row, expected),
        lambda backend: backend.delete_if(row.key, expected),
        lambda backend: backend.write_each(
            [Insert(row), Swap(second, expected), DeleteIf(third, token)], is_relaxed=number % 2 == 0
        ),
        lambda backend: backend.delete([obj_key(id_)]),
        lambda backend: backend.fetch_refs(REFS),
        lambda backend: fetch_refs_soon(backend, REFS),
        lambda backend: backend.list_refs(),
        lambda backend: backend.insert_ref(new),
        lambda backend: backend.swap_ref(old, new, carried),
        lambda backend: backend.swap_ref(old, new),
        lambda backend: backend.delete_ref(old),
    ]
    return rng.choice(steps)


class HistoryTests(KitFixtures):
    @pytest.mark.parametrize("seed", range(6))
    async def test_a_random_history_gives_the_answers_of_the_memory_backend(
        self, backend: Backend, other: Backend, seed: int
    ) -> None:
        rng = random.Random(seed)
        model = MemoryBackend()
        await model.setup()

        for number in range(80):
            step = random_step(rng, number)
            assert await step(rng.choice((backend, other))) == await step(model), f"step {number}"

        found = [head for head in await scan_all(backend) if head.key.type != "carried"]
        assert found == [head for head in await scan_all(model) if head.key.type != "carried"]
        assert await backend.list_refs() == await model.list_refs()

    @pytest.mark.parametrize("seed", range(2))
    async def test_racing_changes_of_a_row_form_one_chain_of_versions(
        self, backend: Backend, other: Backend, seed: int
    ) -> None:
        made: list[str] = []
        ended: list[str] = []
        key = versioned(1, "x").key

        async def work(worker: int) -> None:
            rng = random.Random(seed * 100 + worker)
            for number in range(10):
                handle = rng.choice((backend, other))
                current = await fetch_row(handle, key)
                token = f"{worker}-{number}"
                if current is None:
                    if await handle.insert(versioned(1, token)):
                        made.append(token)
                elif rng.random() < 0.3:
                    if await handle.delete_if(key, current.token):
                        ended.append(current.token)
                elif await handle.swap(versioned(1, token), current.token):
                    made.append(token)
                    ended.append(current.token)

        await asyncio.gather(*(work(worker) for worker in range(6)))

        # Every version was ended once, by who won it, except the one that is there now.
        last = await fetch_row(backend, key)
        assert Counter(made) == Counter([*ended, *([last.token] if last else [])])

    @pytest.mark.parametrize("seed", range(2))
    async def test_racing_moves_of_a_reference_form_one_chain_without_a_lost_update(
        self, backend: Backend, other: Backend, seed: int
    ) -> None:
        await backend.insert_ref(reference(1))
        parents: dict[int, int] = {}

        async def work(worker: int) -> None:
            rng = random.Random(seed * 100 + worker)
            for number in range(6):
                handle = rng.choice((backend, other))
                current = await fetch_ref(handle)
                assert current is not None
                head = 1000 * (worker + 1) + number
                updated = reference(head, recent=(current.head, *current.recent[:2]))
                if await handle.swap_ref(current, updated, [fixed(head), fixed(head, type_="commit")]):
                    parents[head] = current.head

        await asyncio.gather(*(work(worker) for worker in range(6)))

        # From the last head back to the first: exactly the swaps that were acknowledged, and all their rows.
        last = await fetch_ref(backend)
        assert last is not None
        chain: list[int] = [last.head]
        while chain[-1] != 1:
            chain.append(parents[chain[-1]])
        assert len(chain) == len(parents) + 1
        keys = [obj_key(head, type_) for head in parents for type_ in ("node", "commit")]
        assert None not in await backend.fetch(keys)

    async def test_a_reader_never_sees_a_reference_before_its_rows(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.write([fixed(1)])
        await backend.insert_ref(reference(1))
        last = 25
        missing: list[Reference] = []

        async def move() -> None:
            for head in range(1, last):
                assert await backend.swap_ref(
                    reference(head), reference(head + 1), [fixed(head + 1, b"x" * 9000)]
                )

        async def look(handle: Backend) -> None:
            while True:
                current = await fetch_ref(handle)
                assert current is not None
                if await fetch_row(handle, obj_key(current.head)) is None:
                    missing.append(current)
                if current.head == last:
                    return
                # Some backends answer small reads at once, and the writer needs its turn on the loop.
                await asyncio.sleep(0)

        await asyncio.gather(move(), look(backend), look(other))

        assert missing == []

    @pytest.mark.parametrize("ticks", [0, 1, 2, 3, 5, 8, 20, 100])
    async def test_a_cancelled_swap_is_applied_wholly_or_never(
        self, backend: Backend, other: Backend, ticks: int
    ) -> None:
        await backend.insert_ref(reference(1))
        rows = [fixed(id_, b"x" * 3000) for id_ in range(10, 16)]
        swap = asyncio.ensure_future(backend.swap_ref(reference(1), reference(2), rows))

        for _ in range(ticks):
            await asyncio.sleep(0)
        swap.cancel()
        await asyncio.wait([swap])

        # Its outcome is unknown, so go on from the same head: one of the two wins, for good.
        has_won = await other.swap_ref(reference(1), reference(3))
        after = await fetch_ref(backend)
        assert after == (reference(3) if has_won else reference(2))
        if not has_won:
            assert await backend.fetch([row.key for row in rows]) == rows

    @pytest.mark.parametrize("ticks", [0, 1, 2, 4, 16])
    async def test_a_handle_serves_others_after_a_cancelled_call(self, backend: Backend, ticks: int) -> None:
        writes = [asyncio.ensure_future(backend.insert(versioned(id_, "a"))) for id_ in range(1, 13)]
        for _ in range(ticks):
            await asyncio.sleep(0)
        for write in writes[::2]:
            write.cancel()

        await asyncio.wait(writes)

        assert all(await asyncio.gather(*writes[1::2]))
        found: list[Row | None] = await backend.fetch([versioned(id_, "a").key for id_ in range(2, 13, 2)])
        assert None not in found
