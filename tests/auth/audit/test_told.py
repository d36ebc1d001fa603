"""One commit as events: what is told of it, and above all what is not."""

from typing import Any, Literal

import msgspec
import pytest

from cynosure.auth.audit.events import to_event
from cynosure.auth.audit.told import MAX_TARGETS, Source, list_dropped, tell_commit
from cynosure.auth.caller import operator_caller
from cynosure.auth.receipts import pack_receipt
from cynosure.persistence.commit import Change, CommitRecord, RequestRecord
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_key
from cynosure.persistence.references import DEFAULT_REALM, catalog_reference, realm_reference
from cynosure.persistence.spi import CatalogId
from cynosure.testing.small_keys import key_of, with_key

MAIN = Source(catalog_reference(DEFAULT_REALM, CatalogId("7"), "main"), "lake")
GRANTS = Source(catalog_reference(DEFAULT_REALM, CatalogId("7"), "grants"), "lake")
PRINCIPALS = Source(realm_reference(DEFAULT_REALM, "principals"), "")


def commit(*changes: Change, **request: Any) -> CommitRecord:
    wanted = RequestRecord(principal="ann", operation="test", changes=changes, **request)
    return CommitRecord(sequence=3, time_us=1_000_000, parents=(), indexes={}, requests=(wanted,))


def receipt_of(kind: Literal["answer", "refusal"]) -> bytes:
    return pack_receipt(key_of(with_key(operator_caller())), kind, b"sealed")


def change(kind: str, key: bytes = b"k", index: str = "names", **detail: Any) -> Change:
    return Change(kind=kind, index=index, key=key, detail=raw_detail(detail))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("table-created", "table"),
        ("principal-role-assigned", "principal-role"),
        ("principal-credentials-rotated", "principal"),
        ("catalog-role-granted", "catalog-role"),
        ("generic-table-dropped", "generic-table"),
        ("restored", ""),
        ("tables-imported", ""),
    ],
)
def test_the_kind_of_a_target_comes_from_the_kind_of_its_change(kind: str, told: str) -> None:
    (event,) = tell_commit(PRINCIPALS, commit(change(kind, name="x")))
    assert event.targets[0].kind == told
    assert event.targets[0].change == kind


def test_of_a_detail_only_what_is_known_to_be_safe_is_told() -> None:
    """I43."""
    detail = {"id": 5, "name": "etl", "client_secret": "s3cret", "secrets": ["s3cret"], "x": {"y": "s3cret"}}
    (event,) = tell_commit(
        PRINCIPALS, commit(change("principal-created", **detail, privilege={"a": "s3cret"}))
    )

    assert (event.targets[0].id, event.targets[0].name) == ("5", "etl")
    assert "s3cret" not in str(event)


def test_a_grant_tells_what_was_granted_on_what_to_whom() -> None:
    granted = change(
        "catalog-role-granted", id=9, name="reader", privilege="TABLE_READ_DATA", on_kind="table", on="a.t"
    )
    (event,) = tell_commit(GRANTS, commit(granted))

    assert event.targets[0].details == {"privilege": "TABLE_READ_DATA", "on_kind": "table", "on": "a.t"}
    assert (event.catalog, event.catalog_id) == ("lake", "7")


def test_a_rename_tells_both_names() -> None:
    renamed = change("table-renamed", encode_key("t1", "a", "old"), path=("b", "new"))
    (event,) = tell_commit(MAIN, commit(renamed))

    assert (event.targets[0].before, event.targets[0].name) == ("a.old", "b.new")


def test_what_has_no_detail_is_named_by_its_key() -> None:
    (event,) = tell_commit(MAIN, commit(change("restored-entry", encode_key("t1", "a", "t"))))
    assert event.targets[0].name == "a.t"


@pytest.mark.parametrize("detail", [b"\xc0", b"", b"\xff\xff", b"\x05", msgspec.msgpack.encode([1, 2])])
def test_a_detail_of_another_shape_is_no_obstacle(detail: bytes) -> None:
    odd = Change(kind="table-created", index="other", key=b"\xff\x02", detail=msgspec.Raw(detail))
    (event,) = tell_commit(MAIN, commit(odd))
    assert event.targets[0].change == "table-created"
    assert list_dropped(commit(odd)) == []


def test_a_request_with_very_many_changes_is_one_event_that_says_how_many_are_left_out() -> None:
    many = commit(*(change("table-created", name=str(at)) for at in range(MAX_TARGETS + 5)))
    (event,) = tell_commit(MAIN, many)
    assert (len(event.targets), event.targets_omitted) == (MAX_TARGETS, 5)


def test_every_request_of_a_group_is_an_event() -> None:
    record = msgspec.structs.replace(
        commit(), requests=tuple(RequestRecord(principal=name, operation="test") for name in "abc")
    )
    assert [event.principal for event in tell_commit(MAIN, record)] == ["a", "b", "c"]


def test_an_event_is_told_in_camel_case_without_what_is_empty() -> None:
    (stored,) = tell_commit(MAIN, commit(change("table-created", id=1, path=("a", "t")), request_id="r"))
    assert msgspec.to_builtins(to_event(DEFAULT_REALM, 42, stored)) == {
        "id": "42",
        "time": "1970-01-01T00:00:01.000000Z",
        "realm": "default",
        "kind": "change",
        "operation": "test",
        "decision": "allowed",
        "principal": "ann",
        "requestId": "r",
        "catalog": "lake",
        "catalogId": "7",
        "targets": ({"kind": "table", "name": "a.t", "id": "1", "change": "table-created"},),
        "reference": "main",
        "sequence": 3,
    }


@pytest.mark.parametrize(
    ("receipt", "count"),
    [(receipt_of("answer"), 1), (receipt_of("refusal"), 0), (b"damaged", 1), (b"", 1)],
    ids=["answer", "refusal", "damaged", "none"],
)
def test_a_refusal_that_is_kept_under_its_key_is_not_told_as_done(receipt: bytes, count: int) -> None:
    record = commit(key_hash="ab" * 32, receipt=receipt)
    assert len(tell_commit(MAIN, record)) == count
