"""What clouds give for a while: kept, renewed in time, asked for once."""

import asyncio
import gc

import pytest

from cynosure.common.secrets import Secret
from cynosure.storage.access.exchange import Answer
from cynosure.storage.access.tokens import Renewed, Token, read_token, refuse_without_keys
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio

URL = "https://login.example.com/token"


class Issuer:
    """Gives tokens that live for an hour, when it is let."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.given = 0
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None

    async def fetch(self) -> Token:
        await self.open.wait()
        if self.error is not None:
            raise self.error
        self.given += 1
        now_ms = self.clock.now_us() // 1000
        return Token(Secret(f"token-{self.given}"), now_ms, now_ms + 3_600_000)


@pytest.fixture
def issuer(manual_clock: ManualClock) -> Issuer:
    return Issuer(manual_clock)


async def load(renewed: Renewed[Token], minutes: int = 10) -> str:
    return (await renewed.load(min_left_ms=minutes * 60_000)).value.reveal()


async def test_one_is_kept_until_it_is_not_good_for_long_enough(issuer: Issuer, manual_clock: ManualClock):
    renewed = Renewed(issuer.fetch, manual_clock)

    assert renewed.get() is None
    assert [await load(renewed), await load(renewed)] == ["token-1", "token-1"]
    await manual_clock.advance(50 * 60)
    assert await load(renewed) == "token-1"
    await manual_clock.advance(1)
    assert await load(renewed) == "token-2"
    kept = renewed.get()
    assert kept is not None
    assert kept.value.reveal() == "token-2"


async def test_a_clock_that_is_set_back_does_not_lengthen_its_life(issuer: Issuer, manual_clock: ManualClock):
    renewed = Renewed(issuer.fetch, manual_clock)
    first = await load(renewed)

    manual_clock.step_wall(-86_400)
    assert await load(renewed) == first
    await manual_clock.advance(51 * 60)

    assert await load(renewed) != first


async def test_who_asks_for_more_than_there_can_be_does_not_ask_every_time(
    issuer: Issuer, manual_clock: ManualClock
):
    renewed = Renewed(issuer.fetch, manual_clock)

    assert await load(renewed, 600) == "token-1"
    await manual_clock.advance(5 * 60)
    assert await load(renewed, 600) == "token-1"
    await manual_clock.advance(5 * 60)
    assert await load(renewed, 600) == "token-2"


async def test_many_who_wait_cost_one_request_and_one_who_gives_up_harms_none(
    issuer: Issuer, manual_clock: ManualClock
):
    renewed = Renewed(issuer.fetch, manual_clock)
    issuer.open.clear()
    waiting = [asyncio.create_task(load(renewed)) for _ in range(64)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    issuer.open.set()

    found = await asyncio.gather(*waiting, return_exceptions=True)

    assert isinstance(found[0], asyncio.CancelledError)
    assert set(found[1:]) == {"token-1"}
    assert issuer.given == 1


async def test_whoever_can_do_with_the_old_one_does_not_wait(issuer: Issuer, manual_clock: ManualClock):
    renewed = Renewed(issuer.fetch, manual_clock)
    await load(renewed)
    await manual_clock.advance(30 * 60)
    issuer.open.clear()
    picky = asyncio.create_task(load(renewed, 50))
    await asyncio.sleep(0)

    assert await load(renewed, 10) == "token-1"

    issuer.open.set()
    assert await picky == "token-2"


async def test_a_failure_reaches_all_who_wait_and_the_next_one_tries_again(
    issuer: Issuer, manual_clock: ManualClock
):
    renewed = Renewed(issuer.fetch, manual_clock)
    issuer.error = StorageUnavailable("down")

    failed = await asyncio.gather(load(renewed), load(renewed), return_exceptions=True)
    issuer.error = None

    assert all(isinstance(each, StorageUnavailable) for each in failed)
    assert await load(renewed) == "token-1"


async def test_a_failure_that_nobody_waits_for_any_more_is_no_noise(
    issuer: Issuer, manual_clock: ManualClock
):
    noise: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    renewed = Renewed(issuer.fetch, manual_clock)
    issuer.open.clear()
    issuer.error = StorageUnavailable("down")
    waiting = asyncio.create_task(load(renewed))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    issuer.open.set()
    for _ in range(5):
        await asyncio.sleep(0)

    gc.collect()
    asyncio.get_running_loop().set_exception_handler(None)
    assert noise == []


async def test_without_keys_there_is_a_reason():
    with pytest.raises(StorageRefused, match="no keys"):
        await refuse_without_keys()


def test_a_grant_says_when_it_ends_or_somebody_else_does():
    said = read_token(Answer(200, b'{"access_token": "t", "expires_in": "60"}'), URL, 1_000)
    assumed = read_token(Answer(200, b'{"access_token": "t"}'), URL, 1_000, expires_ms=5_000)

    assert (said.value.reveal(), said.issued_ms, said.expires_ms) == ("t", 1_000, 61_000)
    assert assumed.expires_ms == 5_000
    with pytest.raises(StorageRefused):
        read_token(Answer(200, b'{"access_token": "t"}'), URL, 1_000)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, b'{"error": "invalid_client", "error_description": "hunter2"}', "invalid_client"),
        (403, b'{"error": {"status": "PERMISSION_DENIED", "message": "hunter2"}}', "PERMISSION_DENIED"),
        (400, b'{"error": "hunter2 <script>"}', ""),
        (400, b'{"error": {"status": 7}}', ""),
        (400, b"hunter2", ""),
        (307, b"", ""),
        (200, b"hunter2", "not understood"),
        (200, b'{"token": "hunter2"}', "not understood"),
        (200, b"\xff", "not understood"),
    ],
)
def test_everything_else_is_a_refusal_that_shows_a_code_and_no_text(status: int, body: bytes, code: str):
    with pytest.raises(StorageRefused) as refused:
        read_token(Answer(status, body), URL, 0)

    assert refused.value.details == {"host": "login.example.com", "status": status, "code": code}
    assert "hunter2" not in str(refused.value)
