"""Removing snapshots: appends do not disturb it, and no branch or tag loses what it names."""

from typing import Any

import pytest

from cynosure.iceberg.appending.removals import check_removals, relax
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.requirements import check_requirements, decode_requirements
from cynosure.iceberg.updates import decode_updates
from tests.iceberg.appending.samples import table
from tests.iceberg.appending.test_request import at
from tests.iceberg.samples import set_ref, to_json, update


def remove(*ids: int) -> dict[str, Any]:
    return {"action": "remove-snapshots", "snapshot-ids": list(ids)}


def unset(name: str) -> dict[str, Any]:
    return {"action": "remove-snapshot-ref", "ref-name": name}


def relaxed(metadata: Any, requirements: list[dict[str, Any]], *updates: dict[str, Any]) -> None:
    wanted = decode_updates(to_json(list(updates)))
    check_requirements(metadata, relax(metadata, decode_requirements(to_json(requirements)), wanted))
    check_removals(metadata, wanted)


def test_appends_since_do_not_disturb() -> None:
    relaxed(table(heads=[1, 2, 3, 4]), [at(3)], remove(1, 2))


def test_a_branch_that_went_elsewhere_does() -> None:
    back = update(table(heads=[1, 2, 3]), set_ref("main", 2))
    with pytest.raises(RequirementFailed):
        relaxed(back, [at(3)], remove(1))


def test_whoever_also_does_something_else_is_held_to_what_it_asserts() -> None:
    with pytest.raises(RequirementFailed):
        relaxed(table(heads=[1, 2, 3]), [at(2)], remove(1), set_ref("main", 2))


def test_an_assertion_about_a_tag_is_met_or_not() -> None:
    tagged = update(table(heads=[1, 2, 3]), set_ref("v1", 3, "tag"))
    with pytest.raises(RequirementFailed):
        relaxed(tagged, [at(2, "v1")], remove(1))


@pytest.mark.parametrize(
    "updates",
    [
        [remove(3)],
        [remove(2)],
        [set_ref("main", 1), remove(1)],
        [set_ref("v2", 1, "tag"), remove(1)],
        [remove(1), set_ref("v2", 1, "tag")],
        [unset("v1"), set_ref("v1", 2, "tag"), remove(2)],
    ],
)
def test_what_a_branch_or_tag_names_stays(updates: list[dict[str, Any]]) -> None:
    tagged = update(table(heads=[1, 2, 3]), set_ref("v1", 2, "tag"))
    with pytest.raises(RequirementFailed, match="needs it"):
        relaxed(tagged, [], *updates)


@pytest.mark.parametrize(
    "updates",
    [[remove(1)], [unset("v1"), remove(1, 2)], [set_ref("main", 1), remove(3)], [remove(77)]],
)
def test_anything_else_is_removed(updates: list[dict[str, Any]]) -> None:
    tagged = update(table(heads=[1, 2, 3]), set_ref("v1", 2, "tag"))
    relaxed(tagged, [], *updates)
