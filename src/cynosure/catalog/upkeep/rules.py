"""What a maintenance policy means: which task, when, whether it is worth it, with which instructions.

Pure: facts about tables are told (`facts.py`), and what is decided is done elsewhere (`scheduler.py`).

Must not break: a policy that is not understood orders nothing.
"""

from typing import Final

import msgspec
from msgspec import Struct, structs

from cynosure.catalog.errors import InvalidPolicy
from cynosure.catalog.policies.maintenance_config import KEYS, POLICY_TASKS, ConfigValue, settle
from cynosure.catalog.policies.system_types import SYSTEM_TYPES, MaintenanceContent, OrphanFileContent
from cynosure.catalog.policies.windows import ALWAYS, Window, parse_days, parse_hours
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.schedules import Schedule, parse_schedule

_TYPES: Final = {each.name: each for each in SYSTEM_TYPES}


class Rule(Struct, frozen=True):
    """What one policy means for the tables it counts for."""

    task_type: TaskType
    schedule: Schedule
    window: Window = ALWAYS
    is_enabled: bool = True
    values: dict[str, ConfigValue] = {}
    """Thresholds and instructions by key."""
    instructions: dict[str, str] = {}
    """What the task is told."""
    notes: tuple[str, ...] = ()
    """What is not used of the policy."""
    problem: str = ""
    """Why it is not understood; empty when it is."""

    def number(self, key: str) -> float | None:
        """A value that is a number; `None` when it is not said and has no default."""
        value = self.values.get(key)
        return None if value is None or isinstance(value, str) else float(value)


def read_rule(policy_type: str, content: str | None, *, default_schedule: str) -> Rule:
    """What a stored policy means."""
    task_type = POLICY_TASKS[policy_type]
    schedule = parse_schedule(default_schedule, field="delegation.maintenance.default_schedule")
    try:
        parsed = _TYPES[policy_type].parse(content or "")
    except InvalidPolicy as error:
        # Stored by another version: what it says now cannot be known.
        return Rule(task_type, schedule, is_enabled=False, problem=str(error))
    assert isinstance(parsed, MaintenanceContent)  # noqa: S101 - that is what these types parse
    settled = settle(task_type, parsed.config)
    values = settled.values
    notes = tuple(f"config.{key} is not known here and is left to engines" for key in settled.unknown)
    if isinstance(parsed, OrphanFileContent):
        values = values | _orphan_values(parsed)
    rule = Rule(
        task_type,
        schedule,
        is_enabled=parsed.enable,
        values=values,
        instructions=_instructions(task_type, values, parsed),
        notes=notes,
    )
    if settled.malformed:
        text = "; ".join(f"config.{key} must be {may_be}" for key, may_be in settled.malformed)
        return structs.replace(rule, problem=text)
    return structs.replace(
        rule,
        schedule=parse_schedule(str(values["schedule"]), field="schedule")
        if "schedule" in values
        else schedule,
        window=_window(values),
    )


def _window(values: dict[str, ConfigValue]) -> Window:
    begin, end = parse_hours(str(values["window"])) if "window" in values else (0, 24 * 60)
    days = parse_days(str(values["window_days"])) if "window_days" in values else ALWAYS.days
    return Window(begin, end, days)


def _orphan_values(content: OrphanFileContent) -> dict[str, ConfigValue]:
    age = content.max_orphan_file_age_in_days
    # Beside `config`, where Apache Polaris has it; it wins over the same key inside.
    return {"max_orphan_file_age_in_days": float(age)} if isinstance(age, int | float) else {}


def _instructions(
    task_type: TaskType, values: dict[str, ConfigValue], content: MaintenanceContent
) -> dict[str, str]:
    found = {name: _as_text(value) for name, value in values.items() if KEYS[task_type][name].is_instruction}
    if isinstance(content, OrphanFileContent) and isinstance(content.locations, tuple):
        found["locations"] = msgspec.json.encode(content.locations).decode()
    return found


def _as_text(value: ConfigValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)
