"""A plan of deletion: batches of files in storage, and a marker that they are all there.

It lies below the table's own location, so credentials for the table are enough, and whoever works on the task
next finds it:

    LOCATION/metadata/.cynosure-purge-TASK/plan-ROUND                the marker, written last, by one only
    LOCATION/metadata/.cynosure-purge-TASK/GENERATION-ROUND-NUMBER   1,000 files each, compressed

A maintainer must not break: others can write there (old credentials of the table), so all that is read from
a plan is checked as if a stranger had written it; and a batch keeps its name, because its receipt does.
"""

import re
import zlib
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Struct, field

from cynosure.common.errors import AlreadyExists, BadInput, Damaged
from cynosure.delegation.jobs.live_files.expanding import MOST_NAMED, Trouble
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.references import Role
from cynosure.delegation.jobs.live_files.scratch import Row
from cynosure.storage.decorators.listing import open_listing
from cynosure.storage.errors import FileMissing
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location

BATCH_FILES: Final = 1_000
"""Files of one batch: what S3 deletes with one request."""
_NAME: Final = re.compile(r"[0-9a-z]{1,32}(?:-[0-9]{1,10}){2,4}")
_MOST_BYTES: Final = 8 * 2**20
"""Of a batch in memory; 1,000 names of the longest are 1 MB."""
_MARKER_BYTES: Final = 32 * 2**20
"""Of a marker: 500,000 batches."""


class Batch(Struct, frozen=True, array_like=True):
    """Some files that are deleted together."""

    name: str
    first_role: int
    last_role: int
    files: int
    bytes: int


class Plan(Struct, frozen=True):
    """All batches of one round."""

    generation: str
    """Of whoever made it: another plan has batches with other names."""
    batches: tuple[Batch, ...]
    trouble: Trouble = field(default_factory=Trouble)
    outside_count: int = 0
    outside: tuple[str, ...] = ()
    """Some files that the table names and that are not in its places: they stay. Of a removal of orphans, to
    which they do not matter, some of the orphans."""

    @property
    def files(self) -> int:
        """All of them together."""
        return sum(each.files for each in self.batches)

    @property
    def bytes(self) -> int:
        """All of them together."""
        return sum(each.bytes for each in self.batches)

    def list_trouble(self) -> dict[str, int | list[str]]:
        """What a result tells of it."""
        found: dict[str, int | list[str]] = {}
        for name, count, some in (
            ("outside", self.outside_count, list(self.outside)),
            ("missing", self.trouble.missing_count, self.trouble.missing),
            ("corrupt", self.trouble.corrupt_count, self.trouble.corrupt),
            ("encrypted", self.trouble.encrypted_count, self.trouble.encrypted),
        ):
            if count:
                found |= {f"{name}_count": count, name: some[:MOST_NAMED]}
        return found


_PLAN: Final = msgspec.json.Decoder(Plan)
_ROWS: Final = msgspec.msgpack.Decoder(list[Row])


class PlanFolder:
    """The files of the plans of one task."""

    def __init__(self, files: FileIO, places: Places, location: Location) -> None:
        self._files = files
        self._places = places
        self.location = location

    async def load(self, number: int) -> Plan | None:
        """The plan of a round; `None` when there is none, or none that we could have written.

        So one without files is none: that nothing is left is found by looking, never believed.
        """
        try:
            data = await self._files.read(self._marker(number), limit_bytes=_MARKER_BYTES)
            plan = _PLAN.decode(data)
        except (FileMissing, msgspec.DecodeError, BadInput, UnicodeDecodeError):
            return None
        is_ours = plan.batches and all(each.files > 0 and _NAME.fullmatch(each.name) for each in plan.batches)
        return plan if is_ours else None

    async def publish(self, number: int, plan: Plan) -> Plan:
        """Make this the plan of a round, unless there is one: that then."""
        data = msgspec.json.encode(plan)
        try:
            await self._files.write(self._marker(number), data)
        except AlreadyExists:
            if (other := await self.load(number)) is not None:
                return other
            await self._files.write(self._marker(number), data, overwrite=True)
        return plan

    async def write_batch(self, name: str, rows: Sequence[Row]) -> Batch:
        """Keep the files of a batch."""
        await self._files.write(self.location.child(name), encode_rows(rows), overwrite=True)
        return describe(name, rows)

    async def read_batch(self, name: str) -> list[Row]:
        """The files of a batch, all in places of the table. `Damaged` when it is not what it was."""
        try:
            data = await self._files.read(self.location.child(name), limit_bytes=_MOST_BYTES)
        except (FileMissing, BadInput) as error:
            raise Damaged("A batch of a plan is not there any more", batch=name) from error
        return decode_rows(data, name, self._places)

    async def forget(self) -> None:
        """Remove all of it."""
        found: list[Location] = []
        async with aclosing(open_listing(self._files, self.location)) as listed:
            async for each in listed:
                found.append(each.location)
        # Markers last: what has no marker is planned again.
        found.sort(key=lambda each: each.segments[-1].startswith("plan-"))
        for at in range(0, len(found), BATCH_FILES):
            await self._files.delete_many(found[at : at + BATCH_FILES])

    def _marker(self, number: int) -> Location:
        return self.location.child(f"plan-{number:d}")


def encode_rows(rows: Sequence[Row]) -> bytes:
    """The files of a batch as they are stored."""
    return zlib.compress(msgspec.msgpack.encode(rows), level=1)


def decode_rows(data: bytes, name: str, places: Places) -> list[Row]:
    """What `encode_rows` was given. `Damaged` for anything else, and for a file outside of the places."""
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, _MOST_BYTES)
        if unpacking.unconsumed_tail:
            raise Damaged("A batch of a plan is too large", batch=name)
        rows = _ROWS.decode(plain)
        for place, path, _, _ in rows:
            places.locate((place, path))
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError, BadInput) as error:
        raise Damaged("A batch of a plan is not what was written", batch=name) from error
    return rows


def describe(name: str, rows: Sequence[Row]) -> Batch:
    """A batch of these files."""
    roles = [role for _, _, _, role in rows]
    return Batch(name, min(roles), max(roles), len(rows), sum(size for _, _, size, _ in rows))


def find_folder(places: Places, location: str, name: str) -> Location:
    """Where a task keeps its plan: below the table's location, or a place of it."""
    for place in (Location.parse(location), *places.all):
        inside = place.child("metadata", name)
        if places.name(inside) is not None:
            return inside
    raise BadInput("The table has no place", field="location", fix="Order the purge again.")


STAGES: Final = tuple(Role)
"""In the order in which they are deleted."""
