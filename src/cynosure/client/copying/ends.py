"""Both ends of a copy: a catalog that is read, and one that gets something.

A maintainer must not break: the table that is copied is only loaded. In the other catalog a place is staged,
which shows nothing to anybody, and a finished table is registered there in one request.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msgspec import Struct

from cynosure.client.api import ApiClient, segment
from cynosure.client.appending.signed_files import Signed
from cynosure.client.appending.stores import Access
from cynosure.client.appending.target import NewerCredentials, StorageCredential
from cynosure.client.catalog import CatalogApi
from cynosure.client.discovery import CATALOG_PATH
from cynosure.common.errors import Expired, Forbidden, NotFound

_DELEGATION: Final = {"X-Iceberg-Access-Delegation": "vended-credentials"}
_SCHEMA: Final = {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "int", "required": False}]}
"""Of what is staged: a place, whose table is another one's metadata."""
_LOAD_S: Final = 300.0
"""Metadata with all snapshots may be large, and a remote behind it slow."""

Path = tuple[str, ...]


class _Answer(Struct, rename="kebab"):
    metadata: dict[str, Any]
    config: dict[str, str] = {}
    storage_credentials: list[StorageCredential] = []
    read_restrictions: Any = None

    def __repr__(self) -> str:
        return "_Answer(***)"


class Opened(NamedTuple):
    """A table, or the place of one, with a way to its files."""

    metadata: dict[str, Any]
    access: Access
    is_restricted: bool = False
    """Whether a row filter or mask counts for the caller."""


class End(CatalogApi):
    """One catalog."""

    def __init__(self, api: ApiClient, catalog: str) -> None:
        super().__init__(api, catalog)
        self.name = catalog

    async def require(self) -> None:
        """`NotFound` when there is no such catalog."""
        # Who may not know of it is refused with what is asked for next.
        with suppress(Forbidden):
            await self._api.request("GET", CATALOG_PATH, query={"warehouse": self.name})

    async def open_table(self, path: Path) -> Opened:
        """A table with all of its snapshots, to be read."""
        url = self._url(path)
        reply = await self._api.request("GET", url, headers=_DELEGATION, timeout_s=_LOAD_S)
        answer = reply.decode(_Answer)

        async def renew() -> list[StorageCredential]:
            return await self._renew(url)

        async def sign(wanted: dict[str, Any]) -> Signed:
            return await self._sign(url, wanted)

        access = Access(answer.config, answer.storage_credentials, renew, sign)
        return Opened(answer.metadata, access, answer.read_restrictions is not None)

    async def find_table(self, path: Path) -> dict[str, Any] | None:
        """The metadata of a table; `None` when there is none."""
        try:
            reply = await self._api.request(
                "GET", self._url(path), query={"snapshots": "refs"}, timeout_s=_LOAD_S
            )
        except NotFound:
            return None
        return reply.decode(_Answer).metadata

    async def propose(self, path: Path) -> str:
        """Where a table of this name would be. Nothing is kept; refused when it could not be created."""
        body = {"name": path[-1], "schema": _SCHEMA, "stage-create": True}
        location: str = (await self._stage(path, body, {})).metadata["location"]
        return location

    async def stage(self, path: Path, location: str) -> Opened:
        """A place that is this caller's to write to, until a table is registered there."""
        body = {"name": path[-1], "schema": _SCHEMA, "location": location, "stage-create": True}
        answer = await self._stage(path, body, _DELEGATION)
        url = self._url(path)

        async def renew() -> list[StorageCredential]:
            try:
                return await self._renew(url)
            except (Expired, NotFound):
                # A copy may take longer than a place is kept for its creator: it is asked for again.
                return (await self._stage(path, body, _DELEGATION)).storage_credentials

        async def sign(wanted: dict[str, Any]) -> Signed:
            try:
                return await self._sign(url, wanted)
            except (Expired, NotFound, Forbidden):
                await self._stage(path, body, _DELEGATION)
                return await self._sign(url, wanted)

        return Opened(answer.metadata, Access(answer.config, answer.storage_credentials, renew, sign))

    async def register(self, path: Path, metadata_location: str) -> None:
        """Make a table of a metadata file that was written."""
        body = {"name": path[-1], "metadata-location": metadata_location}
        await self._change("POST", f"{self._of(path[:-1])}/register", body=body)

    async def find_view(self, path: Path) -> dict[str, Any] | None:
        """The metadata of a view; `None` when there is none."""
        try:
            reply = await self._api.request("GET", f"{self._of(path[:-1])}/views/{segment(path[-1])}")
        except NotFound:
            return None
        return reply.decode(_Answer).metadata

    async def create_view(self, path: Path, body: Mapping[str, Any]) -> None:
        """Create a view."""
        await self._change("POST", f"{self._of(path[:-1])}/views", body={**body, "name": path[-1]})

    async def find_namespace(self, namespace: Path) -> dict[str, str] | None:
        """The properties of a namespace; `None` when there is none."""
        try:
            return (await self.load_namespace(namespace)).properties
        except NotFound:
            return None

    def _url(self, path: Path) -> str:
        return f"{self._of(path[:-1])}/tables/{segment(path[-1])}"

    async def _stage(self, path: Path, body: Mapping[str, Any], headers: Mapping[str, str]) -> _Answer:
        # The same place may be asked for again: what this caller has reserved for the name gives way.
        reply = await self._api.request(
            "POST", f"{self._of(path[:-1])}/tables", body=body, headers=headers, is_repeatable=True
        )
        return reply.decode(_Answer)

    async def _renew(self, url: str) -> list[StorageCredential]:
        reply = await self._api.request("GET", f"{url}/credentials")
        return reply.decode(NewerCredentials).storage_credentials

    async def _sign(self, url: str, wanted: dict[str, Any]) -> Signed:
        # To sign changes nothing, so it may be asked for twice.
        reply = await self._api.request("POST", f"{url}/sign", body=wanted, is_repeatable=True)
        return reply.decode(Signed)
