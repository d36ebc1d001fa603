import pytest

from cynosure.common.errors import BadInput, Conflict
from cynosure.iceberg.requirements import check_requirements, decode_requirements
from tests.iceberg.samples import UUID, new_table, set_ref, to_json, update, with_history

TABLE = update(with_history(2), set_ref("v1", 1, "tag"))


def check(base, *requirements):
    check_requirements(base, decode_requirements(to_json(requirements)))


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": UUID.upper()},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2},
        {"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": 1},
        {"type": "assert-ref-snapshot-id", "ref": "dev", "snapshot-id": None},
        {"type": "assert-ref-snapshot-id", "ref": "dev"},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
    ],
)
def test_a_requirement_that_holds_passes(requirement):
    check(TABLE, requirement)


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        ({"type": "assert-create"}, "table already exists"),
        ({"type": "assert-table-uuid", "uuid": "other"}, f"UUID does not match: expected {UUID} != other"),
        (
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1},
            "branch main has changed: expected id 1 != 2",
        ),
        (
            {"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": 2},
            "tag v1 has changed: expected id 2 != 1",
        ),
        (
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
            "branch main was created concurrently",
        ),
        (
            {"type": "assert-ref-snapshot-id", "ref": "dev", "snapshot-id": 5},
            "branch or tag dev is missing, expected 5",
        ),
        (
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2},
            "last assigned field id changed: expected id 2 != 3",
        ),
        (
            {"type": "assert-current-schema-id", "current-schema-id": 1},
            "current schema changed: expected id 1 != 0",
        ),
        (
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
            "last assigned partition id changed: expected id 1000 != 999",
        ),
        (
            {"type": "assert-default-spec-id", "default-spec-id": 3},
            "default partition spec changed: expected id 3 != 0",
        ),
        (
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 3},
            "default sort order changed: expected id 3 != 0",
        ),
    ],
)
def test_a_requirement_that_fails_says_what_changed(requirement, text):
    with pytest.raises(Conflict) as failed:
        check(TABLE, requirement)

    assert str(failed.value).startswith(f"Requirement failed: {text}")


def test_a_table_to_create_must_not_be_there():
    check(None, {"type": "assert-create"})


def test_what_is_required_of_a_missing_table_fails():
    with pytest.raises(Conflict, match="Requirement failed: table does not exist"):
        check(None, {"type": "assert-default-spec-id", "default-spec-id": 0})


def test_all_requirements_are_checked():
    with pytest.raises(Conflict, match="current schema changed"):
        check(
            new_table(),
            {"type": "assert-table-uuid", "uuid": UUID},
            {"type": "assert-current-schema-id", "current-schema-id": 9},
        )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([{"type": "assert-create"}, {"type": "assert-weather"}], "requirements[1].type"),
        ([{"type": "assert-table-uuid"}], "requirements[0]"),
        (
            [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": "1"}],
            "requirements[0].snapshot-id",
        ),
        (None, "requirements"),
    ],
)
def test_a_requirement_that_cannot_be_read_is_refused_with_its_place(body, field):
    with pytest.raises(BadInput) as refused:
        decode_requirements(to_json(body))

    assert refused.value.field == field
