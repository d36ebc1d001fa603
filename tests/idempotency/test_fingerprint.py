import json
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from cynosure.idempotency.fingerprint import bind, fingerprint

VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
BODIES = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class DropQuery(msgspec.Struct, frozen=True, rename="camel"):
    purge_requested: bool = False
    reason: str | UnsetType = UNSET
    only: list[str] = []


class NamedQuery(msgspec.Struct, frozen=True):
    name: str


def read(query_type, **values):
    return msgspec.convert(values, query_type, strict=False)


def test_it_is_the_sha256_of_the_canonical_body_in_lower_case_hexadecimal():
    assert fingerprint(b'{ "b": 1.0, "a": "\\u00e9" }') == sha256('{"a":"é","b":1}'.encode()).hexdigest()


def test_no_body_is_the_hash_of_nothing():
    assert fingerprint(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(body=BODIES)
def test_spellings_of_one_body_have_one_fingerprint(body):
    compact = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    wide = json.dumps(body, indent=3, sort_keys=True)

    assert fingerprint(compact.encode()) == fingerprint(wide.encode())


@given(one=BODIES, other=BODIES)
def test_different_bodies_have_different_fingerprints(one, other):
    texts = [json.dumps(body, sort_keys=True) for body in (one, other)]
    # By type as well: Python takes True and 1 for equal, JSON does not; -0.0 and 0, 1.0 and 1 are one number.
    alike = json.loads(texts[0], parse_float=number) == json.loads(texts[1], parse_float=number)
    same = alike and tell_types(one) == tell_types(other)

    assert (fingerprint(texts[0].encode()) == fingerprint(texts[1].encode())) == same


def number(text):
    value = float(text)
    # Up to here both spellings are written the same.
    return int(value) if value.is_integer() and abs(value) < 1e21 else text


def tell_types(value):
    match value:
        case bool():
            return "bool"
        case list():
            return [tell_types(item) for item in value]
        case dict():
            return {name: tell_types(item) for name, item in value.items()}
        case _:
            return ""


@pytest.mark.parametrize(
    "body", [b"a=1&b=2", b"\xff\x00", b"\xef\xbb\xbf{}", b"[" * 100_000, b'"\\ud800"', b"NaN"]
)
def test_a_body_that_is_not_json_counts_as_its_bytes(body):
    assert fingerprint(body) == sha256(body).hexdigest()
    assert fingerprint(body + b" ") != fingerprint(body)


@pytest.mark.parametrize("query", [None, DropQuery(), read(DropQuery, purgeRequested="false", only=[])])
def test_a_parameter_with_its_default_is_as_good_as_left_out(query):
    assert fingerprint(b"{}", query) == fingerprint(b"{}")


def test_requests_that_differ_in_a_parameter_have_different_fingerprints():
    queries = [
        read(DropQuery),
        read(DropQuery, purgeRequested="true"),
        read(DropQuery, reason="true"),
        read(DropQuery, reason=""),
        read(DropQuery, only=["a", "b"]),
        read(DropQuery, only=["b", "a"]),
        read(DropQuery, only=["a,b"]),
        read(DropQuery, purgeRequested="true", only=["a"]),
        read(NamedQuery, name="true"),
    ]

    assert len({fingerprint(b"{}", query) for query in queries}) == len(queries)


def test_a_parameter_is_not_a_member_of_the_body():
    assert fingerprint(b"", DropQuery(purge_requested=True)) != fingerprint(b'{"purgeRequested":true}')


def test_stored_fingerprints_are_those_of_the_first_release():
    query = DropQuery(purge_requested=True, reason="wrong region")
    body = b'{"ids": [7390122319846577001, 2.50], "name": "caf\\u00e9"}'  # codespell:ignore caf

    assert fingerprint(body) == "0366549101863e44329341ca0e9a96c145d7d9c17db4500bbbdc8d2e570f4d67"
    assert fingerprint(body, query) == "24817b6da7b6edb0e6075448d1fc0ee67b8553dc1e85716573f89ac8a10e9ff4"


def test_a_stored_fingerprint_tells_nothing_of_the_payload_without_the_key() -> None:
    found = fingerprint(b'{"clientSecret":"hunter2"}')

    assert bind(found, "one") == bind(found, "one")
    assert bind(found, "one") != bind(found, "two")
    assert bind(found, "one") != bind(fingerprint(b"{}"), "one")
    assert found not in bind(found, "one")
