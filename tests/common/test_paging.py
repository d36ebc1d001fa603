import base64
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadPageToken, Expired, Misconfigured
from cynosure.common.paging import PageTokens

KEY = bytes(range(32))
HOUR_US = 3_600_000_000


class FixedClock:
    def __init__(self, now_us=1_750_000_000_000_000):
        self.us = now_us

    def now_us(self):
        return self.us

    def monotonic_s(self):
        return self.us / 1e6

    async def sleep(self, seconds):
        raise AssertionError("Page tokens wait for nothing")


def make(key=KEY, clock=None):
    return PageTokens(key, clock or FixedClock(), timedelta(hours=1))


@given(scope=st.text(), payload=st.binary(max_size=300))
def test_a_token_opens_to_its_payload_in_its_scope(scope, payload):
    token = make().seal(scope, payload)

    assert make().open(scope, token) == payload
    assert token.replace("-", "").replace("_", "").isalnum()


@given(scope=st.text(), other=st.text(), payload=st.binary(max_size=50))
def test_a_token_does_not_open_in_another_scope(scope, other, payload):
    """I13."""
    if scope != other:
        with pytest.raises(BadPageToken):
            make().open(other, make().seal(scope, payload))


def test_scope_and_payload_cannot_be_shifted_into_each_other():
    sealed = make().seal("a", b"bc")

    for scope in ("", "ab", "abc"):
        with pytest.raises(BadPageToken):
            make().open(scope, sealed)


def test_a_token_of_another_store_is_refused():
    with pytest.raises(BadPageToken):
        make().open("tables", make(key=bytes(32)).seal("tables", b"x"))


def test_all_servers_of_a_store_open_each_others_tokens():
    assert make().open("tables", make().seal("tables", b"x")) == b"x"


@given(token=st.text(max_size=200))
def test_arbitrary_text_is_a_bad_token_and_nothing_else(token):
    with pytest.raises(BadPageToken):
        make().open("tables", token)


@given(sealed=st.binary(max_size=200))
def test_arbitrary_bytes_are_a_bad_token_and_nothing_else(sealed):
    with pytest.raises(BadPageToken):
        make().open("tables", base64.urlsafe_b64encode(sealed).decode().rstrip("="))


def test_every_truncation_is_refused():
    token = make().seal("tables", b"some payload")

    for length in range(len(token)):
        with pytest.raises(BadPageToken):
            make().open("tables", token[:length])


def test_every_changed_character_is_refused():
    """I13."""
    token = make().seal("tables", b"some payload!")
    rng = random.Random(3)

    for position, old in enumerate(token):
        new = rng.choice([c for c in "ABCdef019-_" if c != old])
        with pytest.raises(BadPageToken):
            make().open("tables", token[:position] + new + token[position + 1 :])


def test_only_the_spelling_we_issue_is_accepted():
    token = make().seal("tables", b"xy")
    assert len(token) % 4, "needs a token whose padding was cut"

    for spelling in (token + "=", token + "==", token + "\n", f" {token}", token[:5] + "\n" + token[5:]):
        with pytest.raises(BadPageToken):
            make().open("tables", spelling)


def test_the_expiry_cannot_be_moved():
    sealed = bytearray(base64.urlsafe_b64decode(make().seal("t", b"12") + "=="))
    sealed[1:9] = (2**63).to_bytes(8, "big")

    with pytest.raises(BadPageToken):
        make().open("t", base64.urlsafe_b64encode(sealed).decode().rstrip("="))


def test_a_token_expires_exactly_at_its_life_and_says_what_to_do():
    """I13."""
    clock = FixedClock()
    tokens = make(clock=clock)
    token = tokens.seal("tables", b"x")

    clock.us += HOUR_US - 1
    assert tokens.open("tables", token) == b"x"
    clock.us += 1
    with pytest.raises(Expired) as expired:
        tokens.open("tables", token)
    assert "without a page token" in expired.value.fix


def test_an_expired_token_of_another_scope_is_bad_not_expired():
    clock = FixedClock()
    token = make(clock=clock).seal("tables", b"x")
    clock.us += 2 * HOUR_US

    with pytest.raises(BadPageToken):
        make(clock=clock).open("views", token)


def test_a_huge_token_is_refused_before_it_is_decoded():
    with pytest.raises(BadPageToken):
        make().open("tables", "A" * 1_000_000)


def test_a_short_key_is_refused_at_start():
    with pytest.raises(Misconfigured):
        make(key=b"short")


def test_the_token_format_is_stable():
    """Servers of two versions serve one listing during a rolling upgrade."""
    assert make().seal("tables", b"page-2") == (
        "AQAGN5527wQAcGFnZS0yprpP74YQcgXXhp8iyaMeQakRtdMu9xBlxdnqwmSJaWM"
    )
