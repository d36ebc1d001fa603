"""What clients are given: credentials that open one place and nothing beside it, or signatures.

Must not break: a refusal counts only beside something that is allowed with the same credentials, and what was
changed is looked up with the server's own keys, not taken from the client's answer.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from cynosure.auth.caller import Caller
from cynosure.catalog.checking.probe import CONTENT, OTHER_CONTENT, Probe
from cynosure.catalog.checking.reaching import is_listed
from cynosure.catalog.checking.steps import Finding, Skipped
from cynosure.catalog.file_access.giving import subject_of
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.storage.access.ports import Scope, Signed, StoreRequest
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import FileMissing, StorageRefused
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location, is_allowed
from cynosure.storage.open_storage import Storages

if TYPE_CHECKING:
    from cynosure.storage.access.s3.signed_files import SignedFiles

_NOTHING: Final = "Clients of this storage are given neither credentials nor signatures"
_NOBODY: Final = Identifier((), "check-storage")
"""What the store's log calls the table."""


class Giving:
    """What a caller would be given for the files of one probe."""

    def __init__(self, catalog: OpenCatalog, storages: Storages, caller: Caller, probe: Probe) -> None:
        self._catalog = catalog
        self._storages = storages
        self._own = catalog.files
        self._probe = probe
        self._subject = subject_of(catalog, caller, _NOBODY)
        self.has_credentials = False
        """Whether the store gave any, whatever they opened."""

    async def read_write_credentials(self) -> None:
        """Credentials to write open their place, and nothing beside it."""
        client = await self._open_client(is_writable=True)
        mine = self._probe.inside.child("client")
        await client.write(mine, CONTENT, overwrite=True)
        await self._require_readable(client, mine)
        await client.delete(mine)
        if await self._own.exists(mine):
            raise Finding("Credentials to write do not delete", fix="Let the role or key delete files.")
        self._judge(await self._list_opened_beside(client))

    async def read_only_credentials(self) -> None:
        """Credentials to read open their place to read, and nothing beside it."""
        client = await self._open_client(is_writable=False)
        await self._require_readable(client, self._probe.inside.child("own"))
        opened = [
            f"{each} with credentials to read"
            for each in await self._list_changed(client, self._probe.inside)
        ]
        self._judge(opened + await self._list_opened_beside(client))

    async def signing(self) -> None:
        """Requests that are signed for a client are accepted by the store."""
        client = self._open_signed()
        mine = self._probe.inside.child("client")
        await client.write(mine, CONTENT)
        if await client.read(mine) != CONTENT:
            raise Finding(
                "A file holds something else than was written", fix="Check what is before the store."
            )
        await client.delete(mine)
        if await self._own.exists(mine):
            raise Finding("A signed deletion did nothing", fix="Check the rights of the key.")

    async def bulk_deletes(self) -> None:
        """Clients may delete many files with one signed request, where the store holds them to it."""
        client = self._open_signed()
        doomed = [self._probe.inside.child(name) for name in ("own", "client")]
        for each in doomed:
            await self._own.write(each, CONTENT, overwrite=True)
        try:
            await client.delete_many(doomed)
        except StorageRefused as error:
            if "status" in error.details:
                raise
            # Our own rule (`storage.access.s3.trials`): the store does its part, clients do without.
            raise Skipped(error.message, fix=error.fix) from error
        if any([await self._own.exists(each) for each in doomed]):
            raise Finding("A signed deletion did nothing", fix="Check the rights of the key.")

    async def _open_client(self, *, is_writable: bool) -> FileIO:
        vending = self._catalog.storage.vending
        if vending is None:
            raise Skipped(
                _NOTHING if self._catalog.storage.signer is None else "The store gives no credentials"
            )
        places = (self._probe.inside, self._probe.beside)
        for place in places:
            await self._own.write(place.child("own"), CONTENT, overwrite=True)
        await self._own.delete_many([place.child("client") for place in places])
        vended = await vending.vend(Scope((self._probe.inside,), is_writable=is_writable), self._subject)
        self.has_credentials = True
        return self._storages.open_as_client(self._catalog.entity.storage, vended)

    async def _require_readable(self, client: FileIO, location: Location) -> None:
        if await client.read(location) != CONTENT:
            raise Finding(
                "A file holds something else than was written", fix="Check what is before the store."
            )
        if not await is_listed(client, self._probe.inside, location):
            raise Finding("Credentials do not list what they open", fix="Let the role or key list files.")

    async def _list_opened_beside(self, client: FileIO) -> list[str]:
        """What a client could do where it must not do anything."""
        beside = self._probe.beside
        opened = []
        if await _is_done(client.read(beside.child("own"))):
            opened.append("read")
        if await _is_done(is_listed(client, beside, None)):
            opened.append("list")
        return opened + await self._list_changed(client, beside)

    async def _list_changed(self, client: FileIO, place: Location) -> list[str]:
        opened = []
        new, old = place.child("client"), place.child("own")
        await _is_done(client.write(new, OTHER_CONTENT, overwrite=True))
        if await self._own.exists(new):
            opened.append("write")
        await _is_done(client.delete(old))
        if not await self._own.exists(old):
            opened.append("delete")
        return opened

    def _judge(self, opened: list[str]) -> None:
        if opened:
            raise Finding(
                "This store does not enforce session policies: credentials open more than they were made for",
                fix="Use a store that does; or set stsUnavailable, so that requests are signed instead.",
                opened=", ".join(opened),
            )

    def _open_signed(self) -> "SignedFiles":
        signer, config = self._catalog.storage.signer, self._catalog.entity.storage
        if self.has_credentials:
            raise Skipped("Clients get credentials")
        if signer is None or not isinstance(config, S3Storage):
            raise Skipped(_NOTHING)
        scope = Scope((self._probe.inside,), is_writable=True)

        async def sign(request: StoreRequest) -> Signed:
            inspected = signer.inspect(request)
            if not all(is_allowed(each, scope.locations) for each in inspected.reached.locations):
                raise Finding(
                    "A request is read as another one", fix="Report this as a mistake of the catalog."
                )
            return await inspected.sign(scope, self._subject)

        return self._storages.open_signed(config, sign)


async def _is_done(trying: Awaitable[object]) -> bool:
    """Whether something went through. That a storage does not answer is no refusal, and goes on."""
    try:
        return bool(await trying)
    except (StorageRefused, FileMissing):
        return False
