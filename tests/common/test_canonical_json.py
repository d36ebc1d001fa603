import json
import math
import random
import struct

import msgspec
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from cynosure.common.canonical_json import (
    LARGE,
    MAX_CONTAINERS,
    MAX_FRACTIONS,
    MAX_VALUES,
    canonicalize,
)

EXACT = 2**53 - 1
# Around every border of the order of UTF-16 code units: below, in and above the surrogates.
CHARACTERS = 'a1\r\x00\x1f\x7f\x80"\\/ö€\u2028\ud7ff\ue000\ufb33\uffff\U00010000\U0001f600\U0010ffff'
TEXTS = st.text() | st.text(CHARACTERS, max_size=6)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)

# Appendix B of RFC 8785: the bits of a double, and what is written for it.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def spell(value, rng):
    """The document in one of its many spellings."""
    match value:
        case dict():
            members = list(value.items())
            rng.shuffle(members)
            inside = [f"{spell(name, rng)}{pad(rng)}:{spell(item, rng)}" for name, item in members]
            return f"{pad(rng)}{{{','.join(inside)}{pad(rng)}}}{pad(rng)}"
        case list():
            return f"[{pad(rng)}{','.join(spell(item, rng) for item in value)}]{pad(rng)}"
        case str():
            return pad(rng) + '"' + "".join(spell_character(one, rng) for one in value) + '"'
        case bool() | None:
            return pad(rng) + json.dumps(value)
        case float():
            exact = format(value, ".20e")
            return rng.choice([repr(value), exact, exact.upper(), exact.replace("e+", "e")])
        case int() if rng.random() < 0.3:
            return f"{value}.0"
        case _:
            return f"{value}"


def spell_character(one, rng):
    if rng.random() < 0.3:
        units = one.encode("utf-16-be")
        escapes = [f"\\u{units[at]:02x}{units[at + 1]:02X}" for at in range(0, len(units), 2)]
        return "".join(escapes)
    return json.dumps(one, ensure_ascii=rng.random() < 0.3)[1:-1]


def pad(rng):
    return rng.choice(["", "", " ", "\n\t", "\r"])


@given(document=DOCUMENTS)
@example(document={"\ue000": 1, "\U00010000": [{"\uffff": 2.5, "\U0010ffff": -0.0, "a": None}]})
def test_a_document_has_the_form_that_the_rfc_gives_it(document):
    assert canonicalize(json.dumps(document).encode()) == rfc8785.dumps(document)


@given(document=DOCUMENTS, rng=st.randoms(use_true_random=False))
def test_the_form_does_not_depend_on_how_the_document_is_spelled(document, rng):
    assert canonicalize(spell(document, rng).encode()) == rfc8785.dumps(document)


@given(document=DOCUMENTS, rng=st.randoms(use_true_random=False))
def test_a_canonical_document_is_its_own_form(document, rng):
    canonical = canonicalize(spell(document, rng).encode())

    assert canonicalize(canonical) == canonical


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_doubles_are_written_as_in_the_table_of_the_rfc(bits, text):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))

    assert canonicalize(repr(number).encode()) == text.encode()


def test_the_forms_of_the_rfc_for_literals_numbers_and_escapes():
    given = (
        rb'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        rb' "string": "\u20ac$\u000F\u000aA\u0027\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}'
    )

    assert canonicalize(given).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_members_are_in_the_order_of_utf16_code_units():
    names = ["\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]
    shuffled = random.Random(7).sample(names, len(names))

    canonical = canonicalize(json.dumps(dict.fromkeys(shuffled, 0)).encode())

    assert list(json.loads(canonical)) == names


@pytest.mark.specs
def test_the_vectors_published_with_the_rfc_come_out_as_published(specs):
    inputs = sorted((specs / "fixtures/jcs/input").glob("*.json"))

    assert inputs
    for path in inputs:
        assert canonicalize(path.read_bytes()) == (path.parent.parent / "output" / path.name).read_bytes()


@given(number=st.integers(-(2**70), 2**70))
@example(number=2**53 + 1)
@example(number=-(2**63))
@example(number=2**64)
def test_an_integer_keeps_all_its_digits(number):
    assert canonicalize(b"[%d]" % number) == b"[%d]" % number


def test_two_snapshot_ids_that_are_one_double_stay_two():
    ids = [7390122319846577001, 7390122319846577002]

    assert float(ids[0]) == float(ids[1])
    assert canonicalize(b"%d" % ids[0]) != canonicalize(b"%d" % ids[1])


class Pair(msgspec.Struct):
    a: int
    b: int = 0


@pytest.mark.parametrize("decoded_to", [Pair, dict[str, int]])
def test_of_members_with_one_name_the_last_counts_as_for_our_decoders(decoded_to):
    repeated, last = b'{"a":1,"b":5,"a":2}', b'{"a":2,"b":5}'

    assert msgspec.json.decode(repeated, type=decoded_to) == msgspec.json.decode(last, type=decoded_to)
    assert canonicalize(repeated) == last


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b" ",
        b"{",
        b"{}{}",
        b"{'a':1}",
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b'"\n"',
        b'"\\ud800"',
        b'"\\ud800x"',
        b'"\\udc00\\ud800"',
        b'{"\\udfff":1}',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"1e400",
        b'{"a":[-1E999]}',
        b"9" * 10_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"\x1f\x8b\x08\x00",
    ],
    ids=lambda document: repr(document[:16]),
)
def test_what_is_not_json_has_no_form(document):
    assert canonicalize(document) is None


def test_members_that_need_the_order_of_utf16_may_be_nested_deeply():
    innermost = '{"\ue000":1,"\U00010000":2}'

    assert (
        canonicalize(("[" * 100 + innermost + "]" * 100).encode())
        == ("[" * 100 + '{"\U00010000":2,"\ue000":1}' + "]" * 100).encode()
    )
    assert canonicalize(("[" * 100_000 + innermost + "]" * 100_000).encode()) is None


def test_a_large_document_has_a_form_too():
    document = {"b": [1.5, 2**60, "é\U0001f600"], "a": "x" * LARGE}

    assert canonicalize(json.dumps(document).encode()) == (
        f'{{"a":"{document["a"]}","b":[1.5,{2**60},"é\U0001f600"]}}'.encode()
    )


@pytest.mark.parametrize(("count", "has_form"), [(MAX_FRACTIONS, True), (MAX_FRACTIONS + 1, False)])
def test_a_large_document_may_have_some_fractions(count, has_form):
    fractions = b",".join([b"0.50"] * count)

    assert (canonicalize(b"[" + fractions + b"]" + b" " * LARGE) is not None) == has_form
    assert canonicalize(b"[" + fractions + b"]") == b"[" + fractions.replace(b"0.50", b"0.5") + b"]"


def test_a_large_document_is_not_put_into_the_order_of_utf16():
    small = '{"\ue000":1,"\U00010000":2}'.encode()

    assert canonicalize(small) is not None
    assert canonicalize(small + b" " * LARGE) is None


def test_a_number_too_small_for_a_double_is_zero():
    assert math.copysign(1, float("-1e-400")) == -1
    assert canonicalize(b"[-1e-400,-0,-0.0,0e9]") == b"[0,0,0,0]"


@pytest.mark.parametrize(
    ("value", "most"),
    [(b"[]", MAX_CONTAINERS - 1), (b"{}", MAX_CONTAINERS - 1), (b"1", MAX_VALUES + 1)],
)
def test_a_large_document_has_few_values_or_no_form(value: bytes, most: int) -> None:
    """Each is made in memory, and is much larger there."""
    documents = [b"[" + b",".join([value] * count) + b"]" + b" " * LARGE for count in (most, most + 1)]

    assert [canonicalize(each) is not None for each in documents] == [True, False]
