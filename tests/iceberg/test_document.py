import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.iceberg.document import MAX_DEPTH, Document, compact_json
from cynosure.iceberg.snapshots import Snapshot, decode_snapshot, read_snapshot

SNAPSHOT = b'{"snapshot-id":5,"timestamp-ms":7,"manifest-list":"x","later":{"deep":[1.10]}}'

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_the_value_is_decoded_once_and_only_on_demand():
    calls = []

    def decode(json: bytes) -> Snapshot:
        calls.append(json)
        return decode_snapshot(json)

    document = Document(SNAPSHOT, decode)
    assert calls == []

    assert document.value is document.value
    assert calls == [SNAPSHOT]


@given(st.dictionaries(st.text().filter(lambda key: key != "schema-id"), ANY_JSON, max_size=5))
def test_changing_a_field_keeps_all_others(fields):
    document = Document(json.dumps(fields).encode(), bytes)

    changed = document.with_fields({"schema-id": 3})

    assert json.loads(changed.json) == {**fields, "schema-id": 3}


def test_numbers_stay_as_they_were_written():
    assert b'"later":{"deep":[1.10]}' in read_snapshot(SNAPSHOT).with_fields({"schema-id": 1}).json


def test_white_space_between_tokens_goes_and_in_text_stays():
    assert compact_json(b'{ "a b" : [ 1 ,\n "c  d" ] }', field="x") == b'{"a b":[1,"c  d"]}'


def test_documents_are_equal_when_their_json_is():
    one = Document(b'{"a":1,"b":2}', bytes)

    assert one == Document(b'{"b":2,"a":1}', bytes)
    assert one != Document(b'{"b":2,"a":2}', bytes)
    assert one != b'{"a":1,"b":2}'


@pytest.mark.parametrize("broken", [b"", b"{", b'{"a":"\xff"}', b"nonsense", b'{"a":1}}'])
def test_what_is_not_json_is_refused_with_the_field(broken):
    with pytest.raises(BadInput) as refused:
        read_snapshot(broken, field="updates[0].snapshot")

    assert refused.value.field == "updates[0].snapshot"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"snapshot-id": "5"}, "snapshot.snapshot-id"),
        ({"snapshot-id": 2**63}, "snapshot.snapshot-id"),
        ({"summary": {"operation": 1}}, "snapshot.summary[...]"),
        ({"timestamp-ms": None}, "snapshot.timestamp-ms"),
    ],
)
def test_a_wrong_value_is_refused_with_its_own_path(change, field):
    with pytest.raises(BadInput) as refused:
        read_snapshot(json.dumps({**json.loads(SNAPSHOT), **change}).encode())

    assert refused.value.field == field


@pytest.mark.parametrize("depth", [MAX_DEPTH, 1000, 100_000])
def test_deep_nesting_is_refused_not_a_crash(depth):
    with pytest.raises(BadInput, match="nested too deeply"):
        read_snapshot(b'{"snapshot-id":1,"x":' + b"[" * depth + b"]" * depth + b"}")


def test_many_brackets_are_not_depth():
    wide = b'{"a":"[[[[\\"{","b":[' + b"[{}]," * 2000 + b"[]]}"

    assert compact_json(wide, field="x") == wide


@pytest.mark.parametrize("quoted", [b'"]]]]"', b'"\\"]]]]"', b'"\\\\"'])
def test_brackets_in_strings_do_not_hide_depth(quoted):
    half = MAX_DEPTH // 2 + 1
    opening = b"[" + quoted + b","
    deep = opening * half * 2 + b"0" + b"]" * half * 2

    with pytest.raises(BadInput, match="nested too deeply"):
        compact_json(deep, field="x")
    assert compact_json(b"[" + opening * half + b"0" + b"]" * half + b"]", field="x")
