"""Turns at a reference (`hold_ref`), for backends that offer them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from cynosure.persistence.spi import Backend, HeldRef
from cynosure.testing.backend_kit.fixtures import KitFixtures
from cynosure.testing.backend_kit.samples import REF, fetch_ref, fixed, reference

HEAD_TYPE = "commit"
UntilWaiting = Callable[[int], Awaitable[None]]
"""Returns when so many wait for a turn at `REF`."""


def hold(backend: Backend, key: object = REF) -> AbstractAsyncContextManager[HeldRef]:
    """A turn; skips where none is offered."""
    turn = backend.hold_ref(key, HEAD_TYPE)  # type: ignore[arg-type]
    if turn is None:
        pytest.skip("this backend offers no turns at a reference")
    return turn


class TurnTests(KitFixtures):
    @pytest.fixture
    def until_waiting(self) -> UntilWaiting:
        """Long enough for a request to arrive. A binding overrides it if its backend tells who waits."""
        return lambda _: asyncio.sleep(0.15)

    async def test_a_turn_shows_the_reference_and_its_heads_row(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1, 2, (9,)))
        await backend.write([fixed(1, b"head", HEAD_TYPE), fixed(1, b"another type")])

        async with hold(backend) as turn:
            assert turn.current == reference(1, 2, (9,))
            assert turn.head_row in (fixed(1, b"head", HEAD_TYPE), None)

    async def test_a_turn_at_a_missing_reference_shows_none(self, backend: Backend) -> None:
        async with hold(backend) as turn:
            assert turn.current is None
            assert turn.head_row is None

    async def test_a_head_without_a_row_is_shown_as_such(self, backend: Backend) -> None:
        await backend.insert_ref(reference(1))

        async with hold(backend) as turn:
            assert turn.current == reference(1)
            assert turn.head_row is None

    async def test_a_holder_moves_the_reference_as_often_as_it_likes(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))

        async with hold(backend):
            assert await backend.swap_ref(reference(1), reference(2), [fixed(2)])
            assert await backend.swap_ref(reference(2), reference(3), [fixed(3)])
            # Acknowledged means visible to all, also before the turn is left.
            assert await fetch_ref(other) == reference(3)

        assert await other.fetch([fixed(2).key, fixed(3).key]) == [fixed(2), fixed(3)]

    async def test_turns_exclude_each_other_so_none_is_prepared_in_vain(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))
        inside = 0

        async def move(handle: Backend) -> None:
            nonlocal inside
            async with hold(handle) as turn:
                inside += 1
                assert inside == 1
                assert turn.current is not None
                head = turn.current.head + 1
                assert await handle.swap_ref(turn.current, reference(head), [fixed(head, type_=HEAD_TYPE)])
                inside -= 1

        await asyncio.gather(*(move(handle) for handle in (backend, other) * 4))

        assert await fetch_ref(backend) == reference(9)

    async def test_turns_come_in_the_order_they_were_asked_for(
        self, backend: Backend, other: Backend, until_waiting: UntilWaiting
    ) -> None:
        await backend.insert_ref(reference(1))
        order: list[int] = []

        async def wait_for_turn(number: int) -> None:
            async with hold(other if number % 2 else backend):
                order.append(number)

        async with hold(backend):
            waiting = []
            for number in range(3):
                waiting.append(asyncio.ensure_future(wait_for_turn(number)))
                await until_waiting(number + 1)
            assert order == []
        await asyncio.gather(*waiting)

        assert order == [0, 1, 2]

    async def test_turns_at_different_references_do_not_wait_for_each_other(
        self, backend: Backend, other: Backend
    ) -> None:
        grants = REF._replace(name="grants")
        await backend.insert_ref(reference(1))
        await backend.insert_ref(reference(1, key=grants))

        async with hold(backend) as turn, hold(other, grants) as other_turn:
            assert turn.current == reference(1)
            assert other_turn.current == reference(1, key=grants)

    async def test_who_does_not_ask_for_a_turn_is_stopped_only_by_the_comparison(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))

        async with hold(backend):
            assert await other.swap_ref(reference(1), reference(2), [fixed(2)])
            assert await fetch_ref(backend) == reference(2)
            assert not await backend.swap_ref(reference(1), reference(3), [fixed(3)])

        assert await fetch_ref(other) == reference(2)

    async def test_a_turn_left_by_an_error_frees_the_reference(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))

        with pytest.raises(ZeroDivisionError):
            async with hold(backend):
                raise ZeroDivisionError

        async with hold(other) as turn:
            assert turn.current == reference(1)

    async def test_a_cancelled_holder_frees_the_reference(self, backend: Backend, other: Backend) -> None:
        await backend.insert_ref(reference(1))
        has_turn = asyncio.Event()

        async def hold_forever() -> None:
            async with hold(backend):
                has_turn.set()
                await asyncio.Event().wait()

        holder = asyncio.ensure_future(hold_forever())
        done, _ = await asyncio.wait(
            [holder, waiter := asyncio.ensure_future(has_turn.wait())], return_when="FIRST_COMPLETED"
        )
        if holder in done:
            waiter.cancel()
            await holder
        holder.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder

        async with hold(other) as turn:
            assert turn.current == reference(1)

    async def test_a_cancelled_waiter_does_not_keep_others_waiting(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))

        async def wait_for_turn() -> None:
            async with hold(other):
                pytest.fail("the turn was taken")

        async with hold(backend):
            waiter = asyncio.ensure_future(wait_for_turn())
            await asyncio.sleep(0.1)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter

        async with hold(other) as turn:
            assert turn.current == reference(1)

    async def test_many_waiting_turns_leave_room_for_reads_and_writes(
        self, backend: Backend, other: Backend
    ) -> None:
        await backend.insert_ref(reference(1))

        async def take_turn() -> None:
            async with hold(backend):
                pass

        async with hold(other):
            waiting = [asyncio.ensure_future(take_turn()) for _ in range(30)]
            await asyncio.sleep(0.1)
            assert await fetch_ref(backend) == reference(1)
            await backend.write([fixed(5)])
        await asyncio.gather(*waiting)
