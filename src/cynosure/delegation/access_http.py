"""The catalog over HTTP, as the service's own principal: tombstones, tables, and credentials for their files.

A maintainer must not break: nothing that is answered here is kept beyond the task; and a catalog that gives
no credentials is a refusal with a fix (`CREDENTIAL_VENDING_FAILED`), never a way around it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

from msgspec import Struct

from cynosure.catalog.claims import join_places
from cynosure.catalog.locations import list_paths
from cynosure.client.api import ApiClient, segment
from cynosure.client.errors import RequestRefused, ServerFailed
from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import CynosureError, Forbidden, NotAuthenticated, Unavailable
from cynosure.delegation.catalog_access import ClientFiles, TableAccess, TableFacts
from cynosure.delegation.jobs.port import JobFailed
from cynosure.storage.errors import StorageRefused
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location
from cynosure.storage.open_vended import open_vended
from cynosure.storage.settings import StorageSettings
from cynosure.storage.vended_expiry import find_expiry_ms

T = TypeVar("T")

NO_CREDENTIALS: Final = "CREDENTIAL_VENDING_FAILED"
_DELEGATION: Final = {"X-Iceberg-Access-Delegation": "vended-credentials"}
_BASE: Final = "/api/catalog/v1"
_OURS: Final = "/api/catalog/cynosure/v1"
_BETWEEN: Final = "\x1f"
_SECRETS: Final = ("s3.access-key-id", "gcs.oauth2.token", "adls.sas-token")
"""One of them is among the properties that open files of an object store."""
_PAGE: Final = "1000"

Renew = Callable[[], Awaitable[Mapping[str, str]]]


class _Credential(Struct, frozen=True):
    prefix: str
    config: dict[str, str]

    def __repr__(self) -> str:
        return "_Credential(…)"


class _Vended(Struct, frozen=True, rename="kebab"):
    config: dict[str, str] = {}
    storage_credentials: list[_Credential] = []

    @property
    def properties(self) -> dict[str, str]:
        """As Iceberg's clients name them; credentials of the first place open the others too."""
        given = self.storage_credentials[0].config if self.storage_credentials else {}
        return {**self.config, **given}

    def __repr__(self) -> str:
        return "_Vended(…)"


class _Tombstone(_Vended, frozen=True, rename="kebab", kw_only=True):
    entity_id: str
    location: str
    places: list[str]
    metadata_location: str
    metadata: dict[str, Any]
    table_uuid: str = ""


class _Table(_Vended, frozen=True, rename="kebab", kw_only=True):
    metadata: dict[str, Any]
    metadata_location: str = ""


class _Dropped(Struct, frozen=True, rename="kebab"):
    id: str
    kind: str
    location: str = ""
    claims: tuple[str, ...] = ()


class _DroppedPage(Struct, frozen=True, rename="kebab"):
    dropped: list[_Dropped]
    next_page_token: str | None = None


class HttpTable:
    """A `TableAccess` with credentials of the catalog."""

    def __init__(self, facts: TableFacts, files: FileIO, renew: Renew | None) -> None:
        self.facts = facts
        self.files = files
        self._renew = renew

    async def client_files(self) -> ClientFiles:
        """See `TableAccess`."""
        if self._renew is None:
            return ClientFiles({}, 0)
        properties = dict(await self._renew())
        return ClientFiles(properties, find_expiry_ms(properties))


class CatalogOverHttp:
    """A `CatalogAccess`: `cynosure.delegation.catalog_access`."""

    def __init__(
        self,
        api: ApiClient,
        *,
        storage: StorageSettings,
        file_locations: Sequence[str],
        clock: Clock,
    ) -> None:
        self._api = api
        self._storage = storage
        self._clock = clock
        self._file_roots = tuple(
            Location.parse(text, field="delegation.service.file_locations") for text in file_locations
        )

    async def open_tombstone(self, order: TaskOrder) -> TableAccess:
        """See `CatalogAccess`."""
        path = _tombstone_path(order)
        found = await self._load(_Tombstone, path)
        return self._open(_facts_of_dropped(found), found, f"{path}/credentials")

    async def begin_purging(self, order: TaskOrder) -> None:
        """See `CatalogAccess`."""
        # For the same task it changes nothing the second time.
        await self._send(f"{_tombstone_path(order)}/purging", {"task-id": order.task_id})

    async def open_table(self, order: TaskOrder) -> TableAccess:
        """See `CatalogAccess`."""
        table = order.table
        namespace = segment(_BETWEEN.join(table.namespace_levels))
        below = f"{_BASE}/{segment(table.catalog_name)}/namespaces/{namespace}"
        path = f"{below}/tables/{segment(table.table_name)}"
        found = await self._load(_Table, path)
        return self._open(_facts_of(order.table.table_entity_id, found), found, f"{path}/credentials")

    async def list_overlapping_dropped(
        self, order: TaskOrder, places: Sequence[Location]
    ) -> list[TableAccess]:
        """See `CatalogAccess`."""
        path = f"{_OURS}/{segment(order.table.catalog_name)}/dropped"
        query, opened = {"pageSize": _PAGE}, list[TableAccess]()
        while True:
            page = await self._load(_DroppedPage, path, query)
            for each in page.dropped:
                if each.kind == "table" and _overlaps(each, places):
                    one = f"{path}/{segment(each.id)}"
                    found = await self._load(_Tombstone, one)
                    opened.append(self._open(_facts_of_dropped(found), found, one))
            if not page.next_page_token:
                return opened
            query = {**query, "pageToken": page.next_page_token}

    async def tell(self, order: TaskOrder, task_id: str) -> None:
        """See `CatalogAccess`. Only purges are waited for."""
        if order.task_type is TaskType.TABLE_PURGE:
            await self._send(f"{_tombstone_path(order)}/ended", {"task-id": task_id})

    def _open(self, facts: TableFacts, given: _Vended, renewed_at: str) -> HttpTable:
        if all(place.scheme == "file" for place in facts.places):
            # They have no credentials; which may be touched is for this service to say.
            return HttpTable(facts, self._open_files({}, facts, None), None)

        async def renew() -> Mapping[str, str]:
            newer = await self._load(_Vended, renewed_at)
            # Addresses and regions come with the table only.
            return _require_credentials({**given.config, **newer.properties})

        properties = _require_credentials(given.properties)
        return HttpTable(facts, self._open_files(properties, facts, renew), renew)

    def _open_files(self, properties: Mapping[str, str], facts: TableFacts, renew: Renew | None) -> FileIO:
        try:
            return open_vended(
                properties, facts.places, self._storage, self._clock, renew, file_roots=self._file_roots
            )
        except StorageRefused as error:
            raise JobFailed(
                error.message, code=NO_CREDENTIALS, status=502, fix=error.fix, **error.details
            ) from error

    async def _load(self, answer: type[T], path: str, query: Mapping[str, str] | None = None) -> T:
        reply = await _asking(self._api.request("GET", path, query=query, headers=_DELEGATION))
        return reply.decode(answer)

    async def _send(self, path: str, body: Any) -> None:
        await _asking(self._api.request("POST", path, body=body, is_repeatable=True))


async def _asking(request: Awaitable[T]) -> T:
    """What the catalog answers; its troubles as those of a task."""
    try:
        return await request
    except (Forbidden, NotAuthenticated, RequestRefused) as error:
        _vending_failed(error)
    except ServerFailed as error:
        raise Unavailable(
            "The catalog failed", fix="Look for the reason in the catalog's log.", reason=str(error)
        ) from error


def _require_credentials(properties: dict[str, str]) -> dict[str, str]:
    if any(properties.get(name) for name in _SECRETS) or any(
        name.startswith("adls.sas-token") for name in properties
    ):
        return properties
    raise JobFailed(
        "The catalog gives no credentials for the files of this table",
        code=NO_CREDENTIALS,
        status=502,
        fix="Configure the catalog's storage so that it can give credentials to clients (for S3: a token "
        "service and a role); signing requests one by one is not enough for a task.",
    )


def _vending_failed(error: CynosureError) -> NoReturn:
    raise JobFailed(
        "The catalog refuses the delegation service",
        code=NO_CREDENTIALS,
        status=502,
        fix="Check the service's principal and its rights (`cynosure delegation init`), and the storage of "
        "the catalog.",
        reason=str(error),
    ) from error


def _facts_of(entity_id: str, found: _Table) -> TableFacts:
    metadata = found.metadata
    own = Location.parse(metadata["location"])
    elsewhere = [Location.parse(text) for _, text in list_paths(metadata.get("properties", {}))]
    return TableFacts(
        entity_id=entity_id,
        table_uuid=str(metadata.get("table-uuid", "")),
        location=own.text,
        places=(own, *join_places(own, elsewhere).others),
        metadata_location=found.metadata_location,
        metadata=metadata,
    )


def _facts_of_dropped(found: _Tombstone) -> TableFacts:
    return TableFacts(
        entity_id=found.entity_id,
        table_uuid=found.table_uuid or str(found.metadata.get("table-uuid", "")),
        location=found.location,
        places=tuple(Location.parse(text) for text in found.places),
        metadata_location=found.metadata_location,
        metadata=found.metadata,
    )


def _overlaps(dropped: _Dropped, places: Sequence[Location]) -> bool:
    own = [Location.parse(text) for text in (dropped.location, *dropped.claims) if text]
    return any(each.overlaps(place) for each in own for place in places)


def _tombstone_path(order: TaskOrder) -> str:
    table = order.table
    return f"{_OURS}/{segment(table.catalog_name)}/tombstones/{segment(table.table_entity_id)}"
