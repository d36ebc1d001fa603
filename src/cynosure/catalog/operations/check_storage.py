"""Check whether a catalog's storage works: for the server, and for the clients it gives access to.

Each allowed location is tried with files of the check's own. A location that a table holds as a whole is left
alone, and so are the files of catalogs that are owned elsewhere, but for a look.

Must not break: it answers with what is wrong, and fails only where the catalog itself cannot be checked.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.checking.giving import Giving
from cynosure.catalog.checking.probe import make_probe
from cynosure.catalog.checking.reaching import Reaching
from cynosure.catalog.checking.steps import Act, Finding, Steps, StorageStep
from cynosure.catalog.directory import Directory
from cynosure.catalog.locations import find_holder
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import CynosureError
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.location import Location

_HELD: Final = "A table holds this whole location, so nothing is written there"
_OWNED_ELSEWHERE: Final = "Another catalog owns these files, so nothing is written there"
_NEEDED: Final = {"write": "Nothing could be written", "delete": "Files could not be deleted"}
"""Steps without which the rest is not tried, and what is said then."""


class StorageCheck(Struct, frozen=True):
    """What came of a check."""

    catalog: str
    storage_type: str
    steps: tuple[StorageStep, ...]

    @property
    def is_ok(self) -> bool:
        """Whether nothing failed."""
        return all(each.outcome != "failed" for each in self.steps)


async def check_storage(directory: Directory, caller: Caller, name: str) -> StorageCheck:
    """Try what servers and clients do with the files of this catalog. `NoSuchCatalog` when there is none."""
    listed, _ = await directory.authorize_on(
        await directory.read(caller.realm), caller, ops.CHECK_STORAGE, name
    )
    catalog = OpenCatalog(
        caller.realm,
        listed.entity,
        directory.shared,
        directory.storages.get(listed.entity.storage, (caller.realm, listed.entity.id)),
    )
    steps = Steps(directory.shared.persistence.clock)
    view = await catalog.read()
    for location in dict.fromkeys(catalog.allowed):
        check = _LocationCheck(directory, catalog, caller, location, steps)
        if catalog.is_facade:
            await check.look()
        elif await find_holder(view, location) is not None:
            check.skip_all(_HELD)
        else:
            await check.run()
    kind = listed.entity.storage.__struct_config__.tag
    return StorageCheck(name, str(kind), tuple(steps.done))


class _LocationCheck:
    """A check of one allowed location."""

    def __init__(
        self, directory: Directory, catalog: OpenCatalog, caller: Caller, location: Location, steps: Steps
    ) -> None:
        self._files = catalog.files
        self._location = location.text
        self._steps = steps
        self._probe = make_probe(location, directory.shared.persistence.rng)
        self._reaching = Reaching(catalog.files, self._probe)
        self._giving = Giving(catalog, directory.storages, caller, self._probe)
        self._may_be_left = False

    async def run(self) -> None:
        """All of it."""
        reason = ""
        try:
            for name, act in self._acts():
                if reason:
                    self._steps.skip(name, self._location, reason)
                elif (await self._steps.run(name, self._location, act)).outcome != "ok":
                    reason = _NEEDED.get(name, "")
        finally:
            # Also when whoever asked has gone.
            if self._may_be_left:
                await self._steps.clean_up(self._location, self._delete_all)

    async def look(self) -> None:
        """Only what changes nothing."""
        for name, _ in self._acts():
            if name == "list":
                await self._steps.run(name, self._location, self._reaching.look)
            else:
                self._steps.skip(name, self._location, _OWNED_ELSEWHERE)

    def skip_all(self, reason: str) -> None:
        """Nothing."""
        for name, _ in self._acts():
            self._steps.skip(name, self._location, reason)

    def _acts(self) -> Iterator[tuple[str, Act]]:
        yield "write", self._write
        yield "read", self._reaching.read
        yield "list", self._reaching.list
        yield "create-once", self._reaching.create_once
        yield "delete", self._reaching.delete
        yield "read-write-credentials", self._giving.read_write_credentials
        yield "read-only-credentials", self._giving.read_only_credentials
        yield "signing", self._giving.signing
        yield "bulk-deletes", self._giving.bulk_deletes

    async def _write(self) -> None:
        self._may_be_left = True
        try:
            await self._reaching.write()
        except StorageRefused:
            self._may_be_left = False
            raise
        except StorageUnavailable:
            # All locations are in one store; the others would wait for it as long again.
            self._steps.stopped_because = "The storage does not answer"
            raise

    async def _delete_all(self) -> None:
        try:
            await self._files.delete_many(self._probe.everything())
        except CynosureError as error:
            left = self._probe.file if self._probe.directory.scheme == "file" else self._probe.directory
            raise Finding(
                "Files of this check may be left",
                fix="Delete what is at or below this place.",
                left=left.text,
                reason=error.message,
            ) from error
