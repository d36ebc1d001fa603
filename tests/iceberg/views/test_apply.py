"""Updates of views: what each does, what the whole must obey, what is refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, Conflict
from cynosure.iceberg.document import Document
from cynosure.iceberg.schema import read_schema
from cynosure.iceberg.views import (
    ViewMetadata,
    apply_view_updates,
    check_view_requirements,
    decode_view_requirements,
    decode_view_updates,
    encode_view,
    new_view,
    parse_view,
    read_version,
)
from tests.iceberg.views.samples import OTHER, SCHEMA, UUID, make_version

NOW = 9_999


def create(**changes: Any) -> ViewMetadata:
    return new_view(
        **{
            "view_uuid": UUID,
            "location": "s3://b/v",
            "schema": read_schema(msgspec.json.encode(SCHEMA)),
            "version": read_version(msgspec.json.encode(make_version(1))),
            "properties": {},
            "now_ms": NOW,
            **changes,
        }
    )


def apply(base: ViewMetadata | None, *updates: dict[str, Any]) -> ViewMetadata:
    return apply_view_updates(base, decode_view_updates(msgspec.json.encode(updates)), now_ms=NOW)


def add(version: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-view-version", "view-version": version}


def set_current(version_id: int = -1) -> dict[str, Any]:
    return {"action": "set-current-view-version", "view-version-id": version_id}


def set_properties(**properties: str) -> dict[str, Any]:
    return {
        "action": "set-properties",
        "updates": {name.replace("_", "-"): text for name, text in properties.items()},
    }


def ids(view: ViewMetadata) -> list[int]:
    return [one.value.version_id for one in view.versions]


def log(view: ViewMetadata) -> list[tuple[int, int]]:
    return [(one.value.version_id, one.value.timestamp_ms) for one in view.version_log]


def test_a_new_view_gets_the_schema_it_came_with_and_its_versions_time_in_the_log() -> None:
    version = read_version(
        msgspec.json.encode(make_version(1, **{"schema-id": 77, "x-extra": {"kept": True}}))
    )
    schema = read_schema(msgspec.json.encode({**SCHEMA, "schema-id": 12}))

    view = create(version=version, schema=schema, properties={"comment": "hi"})

    assert view.current_version().schema_id == view.current_schema().schema_id == 0
    assert log(view) == [(1, 1_001)]
    written = msgspec.json.decode(encode_view(view))
    assert written["versions"][0]["x-extra"] == {"kept": True}
    assert written["view-uuid"] == UUID
    assert written["properties"] == {"comment": "hi"}
    assert parse_view(encode_view(view)) == view


def test_a_replacement_adds_a_version_and_an_entry_to_the_log() -> None:
    view = apply(
        create(),
        {"action": "add-schema", "schema": OTHER, "last-column-id": 1},
        add(make_version(2, **{"schema-id": -1})),
        set_current(),
    )

    assert ids(view) == [1, 2]
    assert view.current_version_id == 2
    assert view.current_schema().fields[0].name == "y"
    assert [one.value.schema_id for one in view.schemas] == [0, 1]
    assert log(view) == [(1, 1_001), (2, 1_002)]


def test_an_old_version_that_becomes_current_again_is_logged_with_the_time_of_the_commit() -> None:
    two = apply(create(), add(make_version(2)), set_current())

    back = apply(two, set_current(1))

    assert back.current_version_id == 1
    assert log(back) == [(1, 1_001), (2, 1_002), (1, NOW)]


def test_an_equal_version_is_found_again_whatever_its_id_and_time() -> None:
    base = create()
    same = make_version(40, ("spark", "select 1"), **{"timestamp-ms": 5, "default-catalog": None})

    again = apply(base, add(same), set_current())

    assert again is base


def test_an_equal_schema_is_found_again_and_counts_as_the_last_added() -> None:
    view = apply(
        create(),
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 9}},
        add(make_version(2, **{"schema-id": -1})),
        set_current(),
    )

    assert len(view.schemas) == 1
    assert view.current_version().schema_id == 0


def test_a_version_whose_id_is_taken_gets_the_next_one() -> None:
    view = apply(create(), add(make_version(1, ("spark", "select 2"))), set_current())
    gap = apply(view, add(make_version(7)), set_current(), add(make_version(3)))

    assert ids(view) == [1, 2]
    assert view.current_version_id == 2
    assert ids(gap) == [1, 2, 7, 8]
    assert gap.current_version_id == 7


def test_only_the_last_change_of_the_current_version_is_logged() -> None:
    view = apply(create(), add(make_version(2)), set_current(), add(make_version(3)), set_current())

    assert ids(view) == [1, 2, 3]
    assert log(view) == [(1, 1_001), (3, 1_003)]


def test_location_and_properties_change_and_nothing_is_done_in_place() -> None:
    base = create(properties={"keep": "1", "drop": "1"})
    before = encode_view(base)

    view = apply(
        base,
        {"action": "set-location", "location": "s3://b/elsewhere"},
        set_properties(keep="2", new="3"),
        {"action": "remove-properties", "removals": ["drop", "never-there"]},
        {"action": "assign-uuid", "uuid": UUID.upper()},
        {"action": "upgrade-format-version", "format-version": 1},
    )

    assert view.location == "s3://b/elsewhere"
    assert view.properties == {"keep": "2", "new": "3"}
    assert view.view_uuid == UUID
    assert encode_view(base) == before
    assert apply(view) is view


def test_history_is_cut_to_its_size_and_the_log_has_no_gap() -> None:
    view = create(properties={"version.history.num-entries": "3"})
    for version_id in range(2, 7):
        view = apply(view, add(make_version(version_id)), set_current())

    assert ids(view) == [4, 5, 6]
    assert [id_ for id_, _ in log(view)] == [4, 5, 6]


def test_ten_versions_are_kept_by_default() -> None:
    view = create()
    for version_id in range(2, 15):
        view = apply(view, add(make_version(version_id)), set_current())

    assert ids(view) == list(range(5, 15))


def test_the_current_version_is_kept_however_old_and_the_log_restarts_after_a_forgotten_one() -> None:
    view = create(properties={"version.history.num-entries": "2"})
    view = apply(view, add(make_version(2)), set_current())
    view = apply(view, set_current(1))
    view = apply(view, add(make_version(3)))

    assert ids(view) == [1, 3]
    assert view.current_version_id == 1
    assert log(view) == [(1, NOW)]


def test_versions_added_by_the_commit_itself_are_all_kept() -> None:
    view = apply(
        create(properties={"version.history.num-entries": "1"}),
        *(add(make_version(version_id)) for version_id in range(2, 6)),
        set_current(),
    )

    assert ids(view) == [2, 3, 4, 5]
    assert log(view) == [(5, 1_005)]


def test_a_new_current_version_keeps_every_dialect_unless_the_view_allows_to_drop_them() -> None:
    base = create(version=read_version(msgspec.json.encode(make_version(1, ("spark", "a"), ("Trino", "b")))))
    lossy = (add(make_version(2, ("SPARK", "c"))), set_current())

    with pytest.raises(BadInput, match=r"^Cannot replace view due to loss of view dialects") as refusal:
        apply(base, *lossy)
    allowed = apply(
        base, {"action": "set-properties", "updates": {"replace.drop-dialect.allowed": "TRUE"}}, *lossy
    )
    wider = apply(base, add(make_version(2, ("SPARK", "c"), ("trino", "d"), ("flink", "e"))), set_current())

    assert refusal.value.details["previous_dialects"] == ["spark", "trino"]
    assert allowed.current_version_id == wider.current_version_id == 2
    assert apply(base, lossy[0]).current_version_id == 1


@pytest.mark.parametrize(
    ("updates", "field"),
    [
        ([{"action": "assign-uuid", "uuid": "1b6506c3-7681-40c8-86dc-e36561f83385"}], "updates[0].uuid"),
        ([{"action": "assign-uuid", "uuid": ""}], "updates[0].uuid"),
        ([{"action": "upgrade-format-version", "format-version": 2}], "updates[0].format-version"),
        ([{"action": "set-location", "location": ""}], "updates[0].location"),
        ([set_current(5)], "updates[0].view-version-id"),
        ([set_current()], "updates[0].view-version-id"),
        ([add(make_version(2, **{"schema-id": 5}))], "updates[0].view-version.schema-id"),
        ([add(make_version(2, **{"schema-id": -1}))], "updates[0].view-version.schema-id"),
        ([add(make_version(2, representations=[]))], "updates[0].view-version.representations"),
        (
            [set_current(1), add(make_version(2, ("a", "1"), ("A", "2")))],
            "updates[1].view-version.representations[1].dialect",
        ),
        ([add({"version-id": 1})], "updates[0].view-version"),
        ([{"action": "add-schema", "schema": {"type": "struct"}}], "updates[0].schema.fields"),
        ([{"action": "set-default-spec", "spec-id": 0}], "updates[0].action"),
        ([{"no": "action"}], "updates[0]"),
        ([{"action": "set-properties", "updates": {"a": 1}}], "updates[0].updates"),
        ([5], "updates[0]"),
        (
            [{"action": "set-properties", "updates": {"version.history.num-entries": "0"}}],
            "properties.version.history.num-entries",
        ),
    ],
)
def test_an_update_that_cannot_be_applied_is_refused_naming_it(updates: list[Any], field: str) -> None:
    base = create()

    with pytest.raises(BadInput) as refusal:
        apply(base, *updates)

    assert refusal.value.field.startswith(field)


@pytest.mark.parametrize("missing", ["assign-uuid", "set-location", "set-current-view-version"])
def test_a_view_made_of_updates_alone_needs_all_its_parts(missing: str) -> None:
    updates = [
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "set-location", "location": "s3://b/v"},
        {"action": "add-schema", "schema": SCHEMA},
        add(make_version(1, **{"schema-id": -1})),
        set_current(),
    ]

    assert apply(None, *updates).current_version_id == 1
    with pytest.raises(BadInput) as refusal:
        apply(None, *[one for one in updates if one["action"] != missing])
    assert missing in refusal.value.fix


def test_ids_that_have_reached_their_end_are_refused_not_wrapped() -> None:
    base = create(version=read_version(msgspec.json.encode(make_version(2**31 - 1))))

    with pytest.raises(BadInput, match="no higher id"):
        apply(base, add(make_version(2)))


def test_a_requirement_names_both_uuids_in_the_words_that_clients_know() -> None:
    view = create()
    other = "1b6506c3-7681-40c8-86dc-e36561f83385"
    required = decode_view_requirements(msgspec.json.encode([{"type": "assert-view-uuid", "uuid": other}]))

    with pytest.raises(Conflict) as refusal:
        check_view_requirements(view, required)
    with pytest.raises(Conflict, match="Requirement failed: view does not exist"):
        check_view_requirements(None, required)

    assert str(refusal.value).startswith(
        f"Requirement failed: view UUID does not match: expected {UUID} != {other}"
    )
    check_view_requirements(
        view,
        decode_view_requirements(msgspec.json.encode([{"type": "assert-view-uuid", "uuid": UUID.upper()}])),
    )
    check_view_requirements(view, [])
    with pytest.raises(BadInput) as unknown:
        decode_view_requirements(b'[{"type":"assert-create"}]')
    assert unknown.value.field == "requirements[0].type"


steps = st.lists(
    st.one_of(
        st.builds(
            lambda id_, sql, dialect: add(make_version(id_, (dialect, f"select {sql}"))),
            st.integers(1, 6),
            st.integers(1, 6),
            st.sampled_from(["spark", "SPARK", "trino"]),
        ),
        st.builds(set_current, st.integers(-1, 8)),
        st.just({"action": "add-schema", "schema": OTHER}),
        st.builds(
            lambda size: {"action": "set-properties", "updates": {"version.history.num-entries": str(size)}},
            st.integers(1, 4),
        ),
    ),
    max_size=4,
)


@given(st.lists(steps, max_size=8))
def test_after_any_commits_the_view_obeys_every_rule_of_a_view(commits: list[list[dict[str, Any]]]) -> None:
    view = create(properties={"replace.drop-dialect.allowed": "true"})
    for updates in commits:
        try:
            after = apply(view, *updates)
        except BadInput:
            continue
        json = encode_view(after)
        assert parse_view(json) == after
        assert len({*ids(after)}) == len(ids(after))
        assert {id_ for id_, _ in log(after)} <= {*ids(after)}
        assert not after.version_log or log(after)[-1][0] == after.current_version_id
        size = int(after.properties.get("version.history.num-entries", "10"))
        added = sum(one["action"] == "add-view-version" for one in updates)
        assert len(after.versions) <= max(size, added + 1)
        assert [one.json for one in view.versions if one.value.version_id in ids(after)] == [
            one.json for one in after.versions if one.value.version_id in ids(view)
        ]
        view = after


def test_documents_in_a_view_are_the_writers_own_bytes() -> None:
    version = read_version(
        b'{"version-id":1,"timestamp-ms":5,"schema-id":0,"summary":{},"default-namespace":[],'
        b'"representations":[{"type":"sql","sql":"\\u00e9","dialect":"x"}],"n":1.50}'
    )

    view = apply(create(), {"action": "add-view-version", "view-version": msgspec.Raw(version.json)})

    assert isinstance(view.versions[1], Document)
    assert b'"n":1.50' in view.versions[1].json
