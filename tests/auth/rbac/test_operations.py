"""Every operation needs exactly what the facts say."""

import pytest

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import OPERATIONS, Operation, commit_table_operation
from cynosure.auth.rbac.privileges import SATISFIED_BY
from cynosure.iceberg.updates import TableUpdate
from tests.auth.rbac import facts


def needs_of(operation: Operation) -> list[tuple[str, tuple[str, ...]]]:
    pairs = zip(operation.kinds, operation.needs, strict=True)
    return [(kind, tuple(need.name for need in needs)) for kind, needs in pairs]


def test_there_are_exactly_these_operations():
    assert set(OPERATIONS) == set(facts.operations())
    assert all(operation.name == name for name, operation in OPERATIONS.items())


@pytest.mark.parametrize("name", facts.operations())
def test_an_operation_needs_exactly(name: str):
    assert needs_of(OPERATIONS[name]) == facts.operations()[name]


@pytest.mark.parametrize(("action", "privilege"), facts.updates().items())
def test_an_update_of_a_table_needs(action: str, privilege: str):
    assert needs_of(commit_table_operation([action])) == [("table", (privilege,))]


def test_every_update_that_clients_can_send_is_in_the_facts():
    tags = {each.__struct_config__.tag for each in TableUpdate.__args__}  # type: ignore[attr-defined]
    assert tags == set(facts.updates())


def test_several_updates_need_all_of_their_privileges_once_each():
    operation = commit_table_operation(
        ["set-properties", "add-snapshot", "set-properties", "set-snapshot-ref"]
    )

    assert needs_of(operation) == [
        ("table", ("TABLE_ADD_SNAPSHOT", "TABLE_SET_SNAPSHOT_REF", "TABLE_SET_PROPERTIES"))
    ]
    assert operation.name == "commit-table"


def test_a_commit_without_updates_needs_to_write_properties():
    assert needs_of(commit_table_operation([])) == [("table", ("TABLE_WRITE_PROPERTIES",))]


@pytest.mark.parametrize(
    ("operation", "actions"),
    [
        (ops.ADD_COLUMNS, ("add-schema", "set-current-schema")),
        (ops.SET_PARTITIONING, ("add-spec", "set-default-spec")),
        (ops.SET_SORT_ORDER, ("add-sort-order", "set-default-sort-order")),
    ],
)
def test_changes_of_shape_need_what_the_updates_need_that_they_make(operation: Operation, actions: tuple):
    assert set(operation.needs[0]) == set(commit_table_operation(actions).needs[0])


def test_needs_come_with_what_meets_them():
    operation = OPERATIONS["rename-table"]

    for needs, met_by in zip(operation.needs, operation.met_by, strict=True):
        assert met_by == tuple((need, SATISFIED_BY[need]) for need in needs)
