"""Set-up, use before it, closing, and what survives."""

import asyncio
from collections.abc import Awaitable, Iterator

import pytest

from cynosure.common.errors import CynosureError, Misconfigured, Unavailable
from cynosure.persistence.spi import Backend, Insert
from cynosure.testing.backend_kit.fixtures import KitFixtures, OpenHandle
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


def every_call(backend: Backend) -> Iterator[Awaitable[object]]:
    """One call of every method that works on a store."""
    yield backend.fetch([obj_key(1)])
    yield backend.write([fixed(1)])
    yield backend.insert(versioned(1, "a"))
    yield backend.swap(versioned(1, "b"), "a")
    yield backend.delete_if(obj_key(1), "a")
    yield backend.write_each([Insert(versioned(1, "a"))])
    yield backend.write_each([Insert(versioned(1, "a")), Insert(versioned(2, "a"))], is_relaxed=True)
    yield backend.delete([obj_key(1)])
    yield backend.scan(after=None, limit=1)
    yield backend.fetch_refs([REF])
    yield fetch_refs_soon(backend, [REF])
    yield backend.list_refs()
    yield backend.insert_ref(reference(1))
    yield backend.swap_ref(reference(1), reference(2), [fixed(2)])
    yield backend.delete_ref(reference(1))


async def outcome_of(call: Awaitable[object]) -> object:
    """The type of what a call refused with, or what it returned."""
    try:
        return await call
    except CynosureError as error:
        return type(error)


class LifecycleTests(KitFixtures):
    async def test_limits_are_usable_and_constant(self, backend: Backend) -> None:
        limits = backend.limits

        assert limits.row_bytes >= 1024
        assert limits.fetch_batch >= 1
        assert backend.limits == limits

    async def test_setup_again_keeps_what_is_stored(self, backend: Backend) -> None:
        await backend.write([fixed(1)])
        await backend.insert_ref(reference(1))

        await backend.setup()

        assert await fetch_row(backend, obj_key(1)) == fixed(1)
        assert await fetch_ref(backend) == reference(1)

    async def test_racing_setups_all_succeed_and_make_one_store(self, open_handle: OpenHandle) -> None:
        first = open_handle()
        handles = [first, *(open_handle() if first.limits.is_shared else first for _ in range(3))]

        await asyncio.gather(*(handle.setup() for handle in handles))

        assert await handles[0].insert_ref(reference(1))
        assert [await fetch_ref(handle) for handle in handles] == [reference(1)] * 4
        for handle in handles:
            await handle.close()

    async def test_every_call_on_a_store_that_was_never_set_up_is_misconfigured(
        self, open_handle: OpenHandle
    ) -> None:
        handle = open_handle()

        outcomes = [await outcome_of(call) for call in every_call(handle)]

        assert outcomes == [Misconfigured] * len(outcomes)
        await handle.close()

    async def test_a_handle_that_was_refused_works_after_setup(self, open_handle: OpenHandle) -> None:
        handle = open_handle()
        with pytest.raises(Misconfigured):
            await handle.write([fixed(1)])
        with pytest.raises(Misconfigured):
            await handle.fetch([obj_key(1)])

        await handle.setup()
        await handle.write([fixed(1)])

        assert await fetch_row(handle, obj_key(1)) == fixed(1)
        await handle.close()

    async def test_every_call_after_close_is_unavailable(self, open_handle: OpenHandle) -> None:
        handle = open_handle()
        await handle.setup()
        await handle.write([fixed(1)])
        await handle.close()

        outcomes = [await outcome_of(call) for call in every_call(handle)]
        setup = await outcome_of(handle.setup())

        assert outcomes == [Unavailable] * len(outcomes)
        assert setup is Unavailable

    async def test_closing_twice_or_unused_does_nothing(self, open_handle: OpenHandle) -> None:
        handle = open_handle()

        await handle.close()
        await handle.close()

    async def test_close_lets_running_writes_finish(self, open_handle: OpenHandle) -> None:
        handle = open_handle()
        await handle.setup()
        writes = [asyncio.ensure_future(handle.write([fixed(id_)])) for id_ in range(1, 9)]
        await asyncio.sleep(0)

        await handle.close()
        outcomes = await asyncio.gather(*writes, return_exceptions=True)

        # A write is either acknowledged or refused as on a closed handle; none hangs or is half done.
        assert all(outcome is None or type(outcome) is Unavailable for outcome in outcomes)
        if handle.limits.is_durable:
            again = open_handle()
            found = await again.fetch([obj_key(id_) for id_ in range(1, 9)])
            acknowledged = [outcome is None for outcome in outcomes]
            assert [row is not None for row in found] == acknowledged
            await again.close()

    async def test_what_was_acknowledged_is_there_after_reopening(self, open_handle: OpenHandle) -> None:
        handle = open_handle()
        if not handle.limits.is_durable:
            await handle.close()
            pytest.skip("this backend declares that it is not durable")
        await handle.setup()
        await handle.insert_ref(reference(1))
        await handle.insert(versioned(1, "a"))
        await handle.swap_ref(reference(1), reference(2, recent=(1,)), [fixed(2)])
        await handle.close()

        again = open_handle()

        assert await fetch_ref(again) == reference(2, recent=(1,))
        assert await again.fetch([versioned(1, "a").key, obj_key(2)]) == [versioned(1, "a"), fixed(2)]
        assert len(await scan_all(again)) == 2
        await again.close()
