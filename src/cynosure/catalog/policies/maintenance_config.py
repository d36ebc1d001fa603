"""Keys in the `config` of maintenance policies: what each means, what it may be, what holds without it.

Keys are read with `_` and `-` alike. Some are Apache Polaris' own and become instructions of the task; others
are ours, and say when it is worth running one.

Must not break: a key that is not known is no error, because engines of others may know it. One that is known
and cannot be understood is never guessed.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from cynosure.catalog.policies.windows import parse_days, parse_hours
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import BadInput
from cynosure.common.schedules import parse_schedule

ConfigValue = str | bool | int | float
MOST: Final = 2**62
"""Larger numbers than this are taken for mistakes."""


class Key(Struct, frozen=True):
    """One key."""

    name: str
    read: Callable[[ConfigValue], ConfigValue]
    """The value in its own type; `ValueError` for what it cannot be."""
    may_be: str
    """As the error says it."""
    default: ConfigValue | None = None
    is_ours: bool = False
    """Whether only this server knows it: then what cannot be understood is refused when it is stored."""
    is_instruction: bool = False
    """Whether the task is told it."""


class _Refused(ValueError):
    """Of a value that its key cannot have."""


def _number(value: ConfigValue) -> float:
    if isinstance(value, bool):
        raise _Refused("not a number")
    return float(value)


def _whole(least: int) -> Callable[[ConfigValue], ConfigValue]:
    def read(value: ConfigValue) -> int:
        number = int(value) if isinstance(value, str) else _number(value)
        if number != int(number) or not least <= number <= MOST:
            raise ValueError("out of range")
        return int(number)

    return read


def _between(least: float, most: float) -> Callable[[ConfigValue], ConfigValue]:
    def read(value: ConfigValue) -> float:
        number = _number(value)
        # Written so that a number that is none is refused as well.
        if not least <= number <= most:
            raise ValueError("out of range")
        return number

    return read


def _text(parse: Callable[[str], object]) -> Callable[[ConfigValue], ConfigValue]:
    def read(value: ConfigValue) -> str:
        if not isinstance(value, str):
            raise _Refused("not a text")
        parse(value)
        return value

    return read


def _flag(value: ConfigValue) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise _Refused("neither true nor false")
    return text == "true"


def _strategy(text: str) -> None:
    if text.lower().replace("-", "").replace("_", "") not in ("binpack", "sort"):
        raise ValueError("not a strategy")


def _nonempty(text: str) -> None:
    if not text.strip():
        raise ValueError("empty")


def _schedule(text: str) -> None:
    try:
        parse_schedule(text, field="schedule")
    except BadInput as error:
        raise ValueError("not a schedule") from error


_DAYS_MOST: Final = 36_500
_RATIO: Final = "a number from 0 to 1"
_COUNT: Final = "a whole number from 1 on"
_AGE: Final = f"a number of days, at most {_DAYS_MOST}"
_WHEN: Final = (
    Key(
        "schedule",
        _text(_schedule),
        "an ISO 8601 duration such as PT6H or a cron line such as '0 3 * * *'",
        is_ours=True,
    ),
    Key("window", _text(parse_hours), "two times of the day in UTC, such as 22:00-06:00", is_ours=True),
    Key("window_days", _text(parse_days), "days such as sat,sun or mon-fri", is_ours=True),
)
_SPEC: Final = Key("spec_id", _whole(0), "the id of a partition spec", is_instruction=True)
_OWN: Final[Mapping[TaskType, tuple[Key, ...]]] = MappingProxyType(
    {
        TaskType.DATA_COMPACTION: (
            Key("target_file_size_bytes", _whole(1), _COUNT, is_instruction=True),
            Key("compaction_strategy", _text(_strategy), "bin-pack or sort", is_instruction=True),
            Key("sort_order", _text(_nonempty), "columns to sort by", is_instruction=True),
            Key("max_concurrent_file_group_rewrites", _whole(1), _COUNT, is_instruction=True),
            _SPEC,
            Key("min_input_files", _whole(1), _COUNT, 5, is_ours=True, is_instruction=True),
            Key("delete_file_threshold", _whole(1), _COUNT, 1, is_ours=True, is_instruction=True),
            Key("small_file_ratio", _between(0, 1), _RATIO, 0.1, is_ours=True),
            Key("delete_file_ratio", _between(0, 1), _RATIO, 0.1, is_ours=True),
        ),
        TaskType.METADATA_COMPACTION: (
            _SPEC,
            Key("min_manifests", _whole(1), _COUNT, 100, is_ours=True),
        ),
        TaskType.SNAPSHOT_EXPIRY: (
            Key("min_snapshot_to_keep", _whole(1), _COUNT, is_instruction=True),
            Key("max_snapshot_age_days", _between(0, _DAYS_MOST), _AGE, is_instruction=True),
            Key("max_ref_age_days", _between(0, _DAYS_MOST), _AGE, is_instruction=True),
        ),
        TaskType.ORPHAN_FILE_REMOVAL: (
            Key("max_orphan_file_age_in_days", _between(0, _DAYS_MOST), _AGE, is_instruction=True),
            # The job alone would only tell: whoever enables a policy wants it done.
            Key("dry_run", _flag, "true or false", False, is_ours=True, is_instruction=True),
        ),
    }
)
KEYS: Final[Mapping[TaskType, Mapping[str, Key]]] = MappingProxyType(
    {kind: MappingProxyType({key.name: key for key in (*_WHEN, *own)}) for kind, own in _OWN.items()}
)
"""By kind of task and name."""
POLICY_TASKS: Final[Mapping[str, TaskType]] = MappingProxyType(
    {
        "system.data-compaction": TaskType.DATA_COMPACTION,
        "system.metadata-compaction": TaskType.METADATA_COMPACTION,
        "system.orphan-file-removal": TaskType.ORPHAN_FILE_REMOVAL,
        "system.snapshot-expiry": TaskType.SNAPSHOT_EXPIRY,
    }
)
"""Which task a type of policies orders."""


class Settled(Struct, frozen=True):
    """What a config says."""

    values: dict[str, ConfigValue]
    """By name of the key, with defaults."""
    unknown: tuple[str, ...]
    """Keys that nobody here knows, as they are written."""
    malformed: tuple[tuple[str, str], ...]
    """Keys that cannot be understood, as they are written, and what each may be."""


def settle(task_type: TaskType, config: Mapping[str, ConfigValue]) -> Settled:
    """What the config of a policy says."""
    keys = KEYS[task_type]
    values = {key.name: key.default for key in keys.values() if key.default is not None}
    unknown: list[str] = []
    malformed: list[tuple[str, str]] = []
    for written, value in config.items():
        key = keys.get(written.replace("-", "_"))
        if key is None:
            unknown.append(written)
            continue
        try:
            values[key.name] = key.read(value)
        except (ValueError, OverflowError):
            malformed.append((written, key.may_be))
    return Settled(values, tuple(unknown), tuple(malformed))


def find_ours_malformed(task_type: TaskType, config: Mapping[str, ConfigValue]) -> tuple[str, str] | None:
    """The first key of ours that cannot be understood, and what it may be."""
    keys = KEYS[task_type]
    found = settle(task_type, config).malformed
    return next((each for each in found if keys[each[0].replace("-", "_")].is_ours), None)
