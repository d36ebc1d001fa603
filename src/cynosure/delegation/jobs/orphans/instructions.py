"""What an order to remove orphans may say besides.

A maintainer must not break: files younger than the least age are never touched. They may belong to a writer
that has not committed yet.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.delegation.jobs.instructions import Instructions
from cynosure.storage.location import Location

_KNOWN: Final = ("max_orphan_file_age_in_days", "older_than", "locations", "dryRun", "dry_run")
_DEFAULT_DAYS: Final = 3.0
_DAY_US: Final = 86_400_000_000
_PREFIX: Final = "operation_parameters.properties"


class OrphanInstructions(Struct, frozen=True):
    """What was asked for."""

    age_us: int
    before_us: int | None
    """A point in time in place of an age."""
    locations: tuple[Location, ...]
    """Where to look; nowhere in particular: everywhere."""
    is_dry_run: bool

    def find_limit_us(self, now_us: int) -> int:
        """Files that were last written before this may be orphans."""
        return now_us - self.age_us if self.before_us is None else self.before_us


def read_instructions(
    properties: Mapping[str, str], *, least_age_s: float, now_us: int
) -> OrphanInstructions:
    """The instructions of an order; `BadInput` names one that cannot be followed."""
    given = Instructions(properties, _KNOWN)
    days = given.find_number("max_orphan_file_age_in_days", most=100_000)
    before_us = _read_time(given)
    found = OrphanInstructions(
        age_us=round((_DEFAULT_DAYS if days is None else days) * _DAY_US),
        before_us=before_us,
        locations=_read_locations(given),
        is_dry_run=given.find_flag("dryRun", default=given.find_flag("dry_run", default=True)),
    )
    if found.find_limit_us(now_us) > now_us - round(least_age_s * 1_000_000):
        raise BadInput(
            "Files this young may belong to a writer that has not committed yet",
            field=f"{_PREFIX}.{'max_orphan_file_age_in_days' if before_us is None else 'older_than'}",
            fix=f"Let files be at least {least_age_s / 3600:g} hours old.",
        )
    return found


def _read_time(given: Instructions) -> int | None:
    """Microseconds; the text has milliseconds since 1970, or RFC 3339."""
    text = given.find("older_than")
    if text is None:
        return None
    if text.isdigit():
        return (given.find_whole("older_than", most=2**50) or 0) * 1_000
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            "An instruction is not a point in time",
            field=f"{_PREFIX}.older_than",
            fix="Use milliseconds since 1970, or a time like 2026-01-31T12:00:00Z.",
            value=text[:100],
        ) from error
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def _read_locations(given: Instructions) -> tuple[Location, ...]:
    text = given.find("locations")
    if text is None:
        return ()
    try:
        listed: Sequence[str] = msgspec.json.decode(text, type=list[str])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            "An instruction is not a list of locations",
            field=f"{_PREFIX}.locations",
            fix='Use a JSON array of locations: ["s3://bucket/table/data"].',
        ) from error
    return tuple(Location.parse(each, field=f"{_PREFIX}.locations") for each in listed)
