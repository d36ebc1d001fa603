"""What maintenance policies mean."""

from typing import Any

import msgspec
import pytest

from cynosure.catalog.errors import InvalidPolicy
from cynosure.catalog.policies.maintenance_config import POLICY_TASKS
from cynosure.catalog.policies.system_types import SYSTEM_TYPES
from cynosure.catalog.upkeep.rules import Rule, read_rule
from cynosure.common.delegated.payload import TableIdentity, TaskOrder
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.jobs.registry import open_jobs

COMPACTION, MANIFESTS = "system.data-compaction", "system.metadata-compaction"
ORPHANS, EXPIRY = "system.orphan-file-removal", "system.snapshot-expiry"
TYPES = {each.name: each for each in SYSTEM_TYPES}


def rule(policy_type: str, *, enable: bool = True, **more: Any) -> Rule:
    content = msgspec.json.encode({"enable": enable, **more}).decode()
    return read_rule(policy_type, content, default_schedule="P1D")


def test_each_system_type_orders_a_task_of_its_own() -> None:
    assert set(POLICY_TASKS) == set(TYPES)
    assert len(set(POLICY_TASKS.values())) == len(POLICY_TASKS)
    assert TaskType.TABLE_PURGE not in POLICY_TASKS.values()


@pytest.mark.parametrize(
    ("policy_type", "instructions"),
    [
        (COMPACTION, {"min_input_files": "5", "delete_file_threshold": "1"}),
        (MANIFESTS, {}),
        (ORPHANS, {"dry_run": "false"}),
        (EXPIRY, {}),
    ],
)
def test_defaults(policy_type: str, instructions: dict[str, str]) -> None:
    found = rule(policy_type)

    assert found.is_enabled
    assert (found.problem, found.notes) == ("", ())
    assert found.schedule.text == "P1D"
    assert str(found.window) == "00:00-24:00"
    assert found.instructions == instructions


@pytest.mark.parametrize(
    ("policy_type", "config", "instructions"),
    [
        (
            COMPACTION,
            {
                "target_file_size_bytes": 134217728,
                "compaction_strategy": "bin-pack",
                "max-concurrent-file-group-rewrites": 5,
                "spec_id": 0,
                "min_input_files": "2",
                "delete_file_threshold": 4,
            },
            {
                "target_file_size_bytes": "134217728",
                "compaction_strategy": "bin-pack",
                "max_concurrent_file_group_rewrites": "5",
                "spec_id": "0",
                "min_input_files": "2",
                "delete_file_threshold": "4",
            },
        ),
        (
            EXPIRY,
            {"min_snapshot_to_keep": 3.0, "max_snapshot_age_days": 0.5, "max_ref_age_days": 7},
            {"min_snapshot_to_keep": "3", "max_snapshot_age_days": "0.5", "max_ref_age_days": "7"},
        ),
        (MANIFESTS, {"spec_id": 2, "min_manifests": 7}, {"spec_id": "2"}),
        (
            ORPHANS,
            {"max_orphan_file_age_in_days": 30, "dry-run": True},
            {"max_orphan_file_age_in_days": "30", "dry_run": "true"},
        ),
    ],
)
def test_what_the_task_is_told(
    policy_type: str, config: dict[str, Any], instructions: dict[str, str]
) -> None:
    assert rule(policy_type, config=config).instructions == instructions


def test_orphan_files_have_fields_beside_the_config() -> None:
    found = rule(
        ORPHANS,
        max_orphan_file_age_in_days=3,
        locations=["s3://a/b", "s3://c"],
        config={"max_orphan_file_age_in_days": 30},
    )

    assert found.instructions == {
        "max_orphan_file_age_in_days": "3",
        "dry_run": "false",
        "locations": '["s3://a/b","s3://c"]',
    }


def test_when_it_runs() -> None:
    found = rule(COMPACTION, config={"schedule": "0 3 * * *", "window": "22:00-06:00", "window-days": "sat"})

    assert (found.schedule.text, str(found.window)) == ("0 3 * * *", "22:00-06:00 sat")


def test_keys_that_nobody_knows_are_left_to_engines() -> None:
    found = rule(COMPACTION, config={"strategy": "x", "x": True})

    assert not found.problem
    assert [note.split()[0] for note in found.notes] == ["config.strategy", "config.x"]


EVERYTHING = {
    COMPACTION: {
        "target_file_size_bytes": 1048576,
        "compaction_strategy": "bin-pack",
        "sort_order": "id DESC",
        "max_concurrent_file_group_rewrites": 2,
        "spec_id": 0,
    },
    MANIFESTS: {"spec_id": 0, "min_manifests": 2},
    ORPHANS: {"max_orphan_file_age_in_days": 3.5},
    EXPIRY: {"min_snapshot_to_keep": 2, "max_snapshot_age_days": 1.5, "max_ref_age_days": 9},
}


@pytest.mark.parametrize("policy_type", TYPES)
def test_the_job_understands_all_that_a_policy_can_tell_it(policy_type: str) -> None:
    config = EVERYTHING[policy_type]
    beside = {"locations": ["s3://a/b"]} if policy_type == ORPHANS else {}
    strategies: list[dict[str, Any]] = [{}]
    if policy_type == COMPACTION:
        without = {key: value for key, value in config.items() if key != "sort_order"}
        config, strategies = without, [{}, {"compaction_strategy": "sort", "sort_order": "id DESC"}]
    for more in strategies:
        found = rule(policy_type, config=config | more, **beside)
        job = open_jobs([found.task_type])[found.task_type]
        order = TaskOrder(
            found.task_type,
            "default",
            "one",
            TableIdentity("7", "lake", ("ns",), "t"),
            properties=found.instructions,
        )

        job.check(order)


OURS = [
    ("schedule", "daily"),
    ("schedule", 5),
    ("schedule", "PT1S"),
    ("window", "8-10"),
    ("window", True),
    ("window_days", "monday"),
]
OF_COMPACTION = [
    ("min_input_files", 0),
    ("min_input_files", "many"),
    ("min_input_files", 1.5),
    ("min_input_files", True),
    ("min-input-files", 1e300),
    ("small_file_ratio", 1.1),
    ("delete_file_ratio", -0.1),
]


@pytest.mark.parametrize(
    ("policy_type", "key", "value"),
    [
        *((policy_type, *pair) for policy_type in TYPES for pair in OURS),
        *((COMPACTION, *pair) for pair in OF_COMPACTION),
        (MANIFESTS, "min_manifests", 0),
        (ORPHANS, "dry_run", "perhaps"),
    ],
)
def test_a_key_of_ours_that_cannot_be_understood_is_refused_and_orders_nothing(
    policy_type: str, key: str, value: Any
) -> None:
    content = msgspec.json.encode({"enable": True, "config": {key: value}}).decode()

    with pytest.raises(InvalidPolicy) as refused:
        TYPES[policy_type].parse(content)
    assert refused.value.field == f"content.config.{key}"
    assert refused.value.fix.startswith("Use ")

    # Stored before there was such a check.
    stored = read_rule(policy_type, content, default_schedule="P1D")
    assert stored.problem


@pytest.mark.parametrize(
    ("policy_type", "key", "value"),
    [
        (COMPACTION, "target_file_size_bytes", "128MB"),
        (COMPACTION, "compaction_strategy", "z-order"),
        (COMPACTION, "spec_id", -1),
        (EXPIRY, "min_snapshot_to_keep", 0),
        (EXPIRY, "max_snapshot_age_days", -1),
        (EXPIRY, "max_ref_age_days", "x"),
        (ORPHANS, "max_orphan_file_age_in_days", "soon"),
    ],
)
def test_a_key_of_polaris_that_cannot_be_understood_is_kept_and_orders_nothing(
    policy_type: str, key: str, value: Any
) -> None:
    content = msgspec.json.encode({"enable": True, "config": {key: value}}).decode()

    TYPES[policy_type].parse(content)
    found = read_rule(policy_type, content, default_schedule="P1D")

    assert found.problem.startswith(f"config.{key} must be ")


@pytest.mark.parametrize("content", [None, "", "{", '{"enable":true,"newer":1}'])
def test_content_of_another_version_orders_nothing(content: str | None) -> None:
    found = read_rule(COMPACTION, content, default_schedule="P1D")

    assert found.problem
    assert not found.is_enabled


def test_a_policy_that_is_switched_off() -> None:
    assert not rule(EXPIRY, enable=False).is_enabled
