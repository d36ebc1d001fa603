import re
from itertools import combinations
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.api.percent import decode_segment
from cynosure.common.errors import BadInput
from cynosure.idempotency.keys import HEADER, MAX_LENGTH, PATTERN, canonical_path, check_key, hash_scope
from cynosure.persistence.spi import ObjId

TABLE = "/api/catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
SCOPE = {
    "realm": "default",
    "catalog": "lake",
    "method": "POST",
    "path": "/api/catalog/v1/lake/namespaces/a%1Fb/tables/orders",
    "principal_id": ObjId(7390122319846577001),
    "actor_id": ObjId(0),
    "key": "0190b1de-7c1c-7b3e-9d00-9b8f1ad2a111",
}


@pytest.mark.parametrize(
    "key",
    ["0190b1de-7c1c-7b3e-9d00-9b8f1ad2a111", "a", "Z", "7", "job_12.try-3", "a" * MAX_LENGTH, "a..--__"],
)
def test_a_key_of_letters_digits_and_three_signs_is_taken_as_it_is(key):
    assert check_key([key.encode()]) == key


@given(
    value=st.from_regex(re.compile(PATTERN, re.ASCII), fullmatch=True)
    | st.text(max_size=3)
    | st.text("a-", max_size=300)
)
def test_exactly_the_published_rule_decides_which_keys_are_taken(value):
    raw = value.encode()
    is_good = re.fullmatch(PATTERN.strip("^$"), value) is not None and len(value) <= MAX_LENGTH

    if is_good:
        assert check_key([raw]) == value
    else:
        with pytest.raises(BadInput):
            check_key([raw])


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"-a",
        b".a",
        b"_a",
        b"a b",
        b"a ",
        b" a",
        b"a\n",
        b"a,b",
        b'"a"',
        b"a/b",
        b"a%20",
        b"a:b",
        b"a" * 256,
        "é".encode(),
        "é".encode("latin-1"),
        "a٣".encode(),  # a digit, but not of ASCII
    ],
)
def test_a_wrong_key_is_refused_with_the_rule_and_without_the_key(value):
    with pytest.raises(BadInput) as refused:
        check_key([value])

    assert refused.value.field == HEADER
    assert "1 to 255 letters, digits" in refused.value.fix
    assert len(value) < 3 or value.decode("latin-1") not in str(refused.value)


@pytest.mark.parametrize("values", [[], [b"a", b"b"], [b"a", b"a"]])
def test_a_request_has_one_key(values):
    with pytest.raises(BadInput) as refused:
        check_key(values)

    assert refused.value.field == HEADER


def spell(name, rng):
    """A name in one of the ways that clients percent-encode it."""
    spelled = bytearray()
    for byte in name.encode():
        must = not (chr(byte).isalnum() and byte < 128) and chr(byte) not in "-._~!$&'()*+,;=:@"
        if must or rng.random() < 0.3:
            spelled += b"%" + format(byte, rng.choice(["02x", "02X"])).encode()
        else:
            spelled.append(byte)
    return bytes(spelled)


@given(names=st.tuples(NAMES, NAMES, NAMES), rng=st.randoms(use_true_random=False))
def test_one_resource_has_one_path_however_its_names_are_encoded(names, rng):
    params = dict(zip(("prefix", "namespace", "table"), names, strict=True))
    decoded = {name: decode_segment(spell(value, rng)) for name, value in params.items()}

    assert canonical_path(TABLE, decoded) == canonical_path(TABLE, params)


@given(one=st.tuples(NAMES, NAMES, NAMES), other=st.tuples(NAMES, NAMES, NAMES))
def test_two_resources_have_two_paths(one, other):
    paths = [
        canonical_path(TABLE, dict(zip(("prefix", "namespace", "table"), names, strict=True)))
        for names in (one, other)
    ]

    assert (paths[0] == paths[1]) == (one == other)


def test_a_path_is_spelled_as_the_rfc_of_uris_recommends():
    path = canonical_path(TABLE, {"prefix": "my lake", "namespace": "a\x1fb", "table": "ö/~-._x%2F"})

    assert path == "/api/catalog/v1/my%20lake/namespaces/a%1Fb/tables/%C3%B6%2F~-._x%252F"


@pytest.mark.parametrize("separator", [b"%1f", b"%1F"])
def test_the_separator_of_namespaces_is_one_in_both_cases(separator):
    namespace = decode_segment(b"a" + separator + b"b")

    assert canonical_path("/ns/{namespace}", {"namespace": namespace}) == "/ns/a%1Fb"


def test_a_path_without_parameters_is_its_template():
    assert canonical_path("/api/management/v1/catalogs", {}) == "/api/management/v1/catalogs"


def test_whatever_differs_in_the_scope_makes_another_key():
    others = {
        "realm": "other",
        "catalog": "",
        "method": "DELETE",
        "path": "/api/catalog/v1/lake/namespaces/a%1Fb/tables/order",
        "principal_id": ObjId(7390122319846577002),
        "actor_id": ObjId(5),
        "key": "0190b1de-7c1c-7b3e-9d00-9b8f1ad2a112",
    }
    scopes = [SCOPE, *({**SCOPE, name: value} for name, value in others.items())]

    assert set(others) == set(SCOPE)
    assert len({hash_scope(**scope) for scope in scopes}) == len(scopes)


@given(text=st.text("ab/\x00\x1f", min_size=6, max_size=12), rng=st.randoms(use_true_random=False))
def test_no_character_moves_from_one_part_of_the_scope_to_the_next(text, rng):
    cuts = rng.sample(list(combinations(range(len(text) + 1), 4)), 2)
    scopes = []
    for cut in cuts:
        ends = (0, *cut, len(text))
        parts = [text[ends[at] : ends[at + 1]] for at in range(5)]
        names = ("realm", "catalog", "method", "path", "key")
        scopes.append({**SCOPE, **dict(zip(names, parts, strict=True))})

    assert (hash_scope(**scopes[0]) == hash_scope(**scopes[1])) == (scopes[0] == scopes[1])


def test_stored_hashes_are_those_of_the_first_release():
    assert hash_scope(**SCOPE) == "bb1ebc2f4116980e52e3f37ba7e574a9ec3ee2b1488eaa97654aeb6ad3914804"


def test_reserved_characters_are_encoded_whether_or_not_a_client_does():
    for one in "!$&'()*+,;=:@":
        bare, encoded = decode_segment(one.encode()), decode_segment(quote(one, safe="").encode())

        assert canonical_path("/t/{t}", {"t": bare}) == canonical_path("/t/{t}", {"t": encoded})
        assert canonical_path("/t/{t}", {"t": bare}) == f"/t/{quote(one, safe='')}"
