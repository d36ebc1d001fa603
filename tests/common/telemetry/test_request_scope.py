import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.telemetry.request_scope import (
    RequestScope,
    choose_request_id,
    current_scope,
    request_scope,
)


@pytest.mark.parametrize("incoming", ["a", "7f3c-11", "trace:1/2", "A" * 128])
def test_a_sane_incoming_id_is_kept(incoming):
    assert choose_request_id(incoming, random.Random(1)) == incoming


@pytest.mark.parametrize(
    "incoming", [None, "", "A" * 129, "a b", "a\n", "a\r\nx: y", "ä", "-a", "${x}", '"', "../x"]
)
def test_an_incoming_id_that_is_not_sane_is_replaced(incoming):
    chosen = choose_request_id(incoming, random.Random(1))

    assert len(chosen) == 32
    assert chosen.isalnum()


@given(st.text(max_size=200))
def test_every_chosen_id_is_printable_ascii(incoming):
    chosen = choose_request_id(incoming, random.Random(1))

    assert chosen.isascii()
    assert chosen.isprintable()
    assert 0 < len(chosen) <= 128


def test_new_ids_differ_and_come_from_the_given_randomness():
    rng = random.Random(5)

    assert choose_request_id(None, rng) != choose_request_id(None, rng)
    assert choose_request_id(None, random.Random(5)) == choose_request_id(None, random.Random(5))


def test_an_inner_scope_adds_to_the_outer_and_ends():
    with request_scope(request_id="r1"):
        with request_scope(realm="default", principal="ann") as inner:
            assert inner == current_scope() == RequestScope("r1", "default", "ann")
        assert current_scope() == RequestScope("r1")
    assert current_scope() == RequestScope()


@pytest.mark.anyio
async def test_concurrent_requests_do_not_see_each_other():
    both_inside = asyncio.Barrier(2)

    async def serve(request_id):
        with request_scope(request_id=request_id):
            await both_inside.wait()
            inner = await asyncio.create_task(read())
            return inner, current_scope().request_id

    async def read():
        return current_scope().request_id

    assert await asyncio.gather(serve("a"), serve("b")) == [("a", "a"), ("b", "b")]
