"""Sessions with the catalog over HTTP: what one user's statements ask, on behalf of that user.

A maintainer must not break: what is refused and what is missing are one answer, `NoSuchRelation`; and a plan
that says other restrictions than the table did when it was opened is `Conflict`, never used.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from cynosure.client.api import segment
from cynosure.client.errors import RequestRefused, ServerFailed
from cynosure.client.http import HttpClient
from cynosure.client.tokens import ClientCredentials
from cynosure.common.clock import Clock
from cynosure.common.errors import (
    BadInput,
    Conflict,
    CynosureError,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.iceberg.expressions import expression_to_json
from cynosure.iceberg.expressions.nodes import TRUE, Expression
from cynosure.iceberg.schema import decode_schema
from cynosure.query.catalog_access import wire
from cynosure.query.catalog_access.asking import AskGateway, Asks, AskUser, Gateway
from cynosure.query.catalog_access.behalf import Behalf, Exchange
from cynosure.query.catalog_access.opening import canonical, open_table
from cynosure.query.catalog_access.planning import PlanReader, read_credentials
from cynosure.query.catalog_access.port import (
    Listed,
    OpenedTable,
    OpenedView,
    PlannedFiles,
    QueryEvent,
    TableName,
)
from cynosure.query.catalog_access.views import open_view
from cynosure.query.errors import NoSuchRelation, NotAllowed, PolicyHides
from cynosure.query.scan_task import Credentials
from cynosure.query.sql.bound import TimeTravel
from cynosure.storage.location import Location

P = TypeVar("P", wire.IdentifierPage, wire.NamespacePage, wire.CatalogPage)

_BASE: Final = "/api/catalog/v1"
_OURS: Final = "/api/catalog/cynosure/v1"
_MANAGEMENT: Final = "/api/management/v1"
_BETWEEN: Final = "\x1f"
_VENDED: Final = {"X-Iceberg-Access-Delegation": "vended-credentials"}
_PAGE: Final = "1000"
_POLL_S: Final = 0.1
_POLL_MAX_S: Final = 2.0
_BY_POLICY: Final = "A policy restricts what this principal may read and do"
"""How the catalog's refusals begin that a policy is the reason of; they name it."""
_POLICIES: Final = re.compile(r"policies='([^']*)'")
_CHECKED: Final = ("required-row-filter", "required-column-projections", "cynosure-mappings")


class HttpCatalogSessions:
    """The catalog, for users whose tokens the gateway gets."""

    def __init__(
        self,
        http: HttpClient,
        credentials: ClientCredentials,
        clock: Clock,
        *,
        renews_credentials: bool = True,
    ) -> None:
        """`credentials` are the gateway's own: a principal that is a trusted service."""
        self._exchange = Exchange(http, credentials, clock)
        self._gateway = Gateway(http, self._exchange, renews_credentials)
        self._clock = clock

    async def open(self, realm: str | None, token: str) -> "HttpCatalogSession":
        """A session of the user whose token this is; `NotAuthenticated` when it is not good."""
        behalf = await self._exchange.load(realm, token)
        return HttpCatalogSession(
            AskUser(self._gateway, realm, token, behalf),
            AskGateway(self._gateway, realm),
            behalf,
            self._clock,
        )


class HttpCatalogSession:
    """A `CatalogSession`: `cynosure.query.catalog_access.port`."""

    def __init__(self, user: Asks, gateway: Asks, behalf: Behalf, clock: Clock) -> None:
        self._user = user
        self._gateway = gateway
        self._claims = behalf.claims
        self._clock = clock

    @property
    def user(self) -> str:
        """See `CatalogSession`."""
        return self._claims.sub

    @property
    def owner(self) -> str:
        """See `CatalogSession`."""
        return f"{self._claims.realm}/{self._claims.principal_id}"

    async def open_name(self, name: TableName, travel: TimeTravel | None) -> OpenedTable | OpenedView:
        """See `CatalogSession`."""
        try:
            return await _open(self._user, name, travel)
        except (NotFound, Forbidden) as error:
            _raise_if_hidden(name, error)
        try:
            reply = await self._user.request("GET", _path(name, "views"))
        except (NotFound, Forbidden, BadInput) as error:
            raise _no_such(name) from error
        except (ServerFailed, RequestRefused) as error:
            raise _failed() from error
        if travel is not None:
            raise NotAllowed(
                "A view has no history", fix="Ask for a time or version of its tables.", view=str(name)
            )
        return open_view(name, reply.decode(wire.LoadedView))

    async def plan(self, table: OpenedTable, columns: Sequence[int], wanted: Expression) -> PlannedFiles:
        """See `CatalogSession`."""
        try:
            return await _Plan(self._user, self._clock, table).make(wanted)
        except NotFound as error:
            raise _no_such(table.name) from error
        except Forbidden as error:
            _raise_if_hidden(table.name, error)
            raise Forbidden(
                "You may not read the rows of this table",
                fix="Ask for the privilege TABLE_READ_DATA on it.",
                table=str(table.name),
            ) from error

    async def open_as_gateway(self, name: TableName) -> OpenedTable:
        """See `CatalogSession`."""
        try:
            opened = await _open(self._gateway, name, None)
        except (NotFound, Forbidden, BadInput) as error:
            raise _not_for_gateway(name) from error
        if opened.is_restricted:
            raise _not_for_gateway(name)
        return opened

    async def plan_as_gateway(
        self, table: OpenedTable, columns: Sequence[int], wanted: Expression
    ) -> PlannedFiles:
        """See `CatalogSession`."""
        try:
            return await _Plan(self._gateway, self._clock, table).make(wanted)
        except (NotFound, Forbidden) as error:
            raise _not_for_gateway(table.name) from error

    async def list_catalogs(self) -> AsyncIterator[Listed]:
        """See `CatalogSession`."""
        async for page in self._pages(f"{_MANAGEMENT}/catalogs", wire.CatalogPage, {}):
            for each in page.catalogs:
                yield Listed((each.name,), "catalog")

    async def list_namespaces(self, catalog: str, parent: tuple[str, ...]) -> AsyncIterator[Listed]:
        """See `CatalogSession`."""
        path = f"{_BASE}/{segment(catalog)}/namespaces"
        query = {"parent": _BETWEEN.join(parent)} if parent else {}
        async for page in self._pages(path, wire.NamespacePage, query):
            for each in page.namespaces:
                yield Listed(tuple(each), "namespace")

    async def list_tables(self, catalog: str, namespace: tuple[str, ...]) -> AsyncIterator[Listed]:
        """See `CatalogSession`."""
        path = f"{_namespace_path(catalog, namespace)}/tables"
        async for page in self._pages(path, wire.IdentifierPage, {}):
            for each in page.identifiers:
                yield Listed((*each.namespace, each.name), "table")

    async def list_views(self, catalog: str, namespace: tuple[str, ...]) -> AsyncIterator[Listed]:
        """See `CatalogSession`."""
        path = f"{_namespace_path(catalog, namespace)}/views"
        async for page in self._pages(path, wire.IdentifierPage, {}):
            for each in page.identifiers:
                yield Listed((*each.namespace, each.name), "view")

    async def load_namespace(self, catalog: str, namespace: tuple[str, ...]) -> dict[str, str]:
        """See `CatalogSession`."""
        try:
            reply = await self._user.request("GET", _namespace_path(catalog, namespace))
        except (NotFound, Forbidden, BadInput) as error:
            raise NoSuchRelation(
                "No such namespace, or it is not yours to see",
                fix="Check its name with SHOW NAMESPACES.",
                namespace=".".join((catalog, *namespace)),
            ) from error
        return reply.decode(wire.Namespace).properties

    async def record(self, event: QueryEvent) -> None:
        """See `CatalogSession`."""
        await self._user.request("POST", f"{_OURS}/query-events", body=event)

    async def _pages(self, path: str, page_type: type[P], query: dict[str, str]) -> AsyncIterator[P]:
        token = ""
        while True:
            sent = {**query, "pageSize": _PAGE, **({"pageToken": token} if token else {})}
            try:
                reply = await self._user.request("GET", path, query=sent)
            except (NotFound, Forbidden, BadInput) as error:
                raise NoSuchRelation(
                    "Nothing of this name can be listed, or it is not yours to list",
                    fix="Check the name, and your privileges to list there.",
                ) from error
            page = reply.decode(page_type)
            yield page
            if not page.next_page_token:
                return
            token = page.next_page_token


class _Plan:
    """One plan, all pages of it."""

    def __init__(self, asks: Asks, clock: Clock, table: OpenedTable) -> None:
        self._asks = asks
        self._clock = clock
        self._table = table
        self._path = _path(table.name, "tables")
        self._renewed = 0

    async def make(self, wanted: Expression) -> PlannedFiles:
        """The files; `Conflict` when the table is not as it was opened."""
        table = self._table
        if table.snapshot_id == 0:
            return PlannedFiles((), (), Credentials(), None)
        body: dict[str, Any] = {
            "snapshot-id": table.snapshot_id,
            "use-snapshot-schema": not table.is_current_schema,
        }
        if wanted != TRUE:
            body["filter"] = expression_to_json(wanted)
        first = await self._begin(body)
        reader = PlanReader(decode_schema(table.schema), table.metadata)
        self._check(first)
        reader.add(first)
        pending = list(first.plan_tasks or ())
        while pending:
            page = await self._ask("POST", f"{self._path}/tasks", {"plan-task": pending.pop()})
            # Pages say it again when they can; the first one always does.
            if page.read_restrictions:
                self._check(page)
            reader.add(page)
            pending += page.plan_tasks or ()
        scheme = Location.parse(table.places[0]).scheme
        credentials, places = read_credentials(
            first.storage_credentials or [], scheme, 1, name=str(table.name)
        )
        return PlannedFiles(
            files=tuple(reader.files),
            deletes=tuple(reader.deletes),
            credentials=credentials,
            renew=None if scheme == "file" else self._make_renew(credentials),
            offsets=tuple(reader.offsets),
            places=places,
        )

    async def _begin(self, body: dict[str, Any]) -> wire.PlanPage:
        try:
            page = await self._ask("POST", f"{self._path}/plan", body)
        except BadInput as error:
            # The snapshot expired, or the columns were changed in between.
            raise _changed(self._table) from error
        pause_s = _POLL_S
        while page.status == "submitted" and page.plan_id:
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _POLL_MAX_S)
            page = await self._ask("GET", f"{self._path}/plan/{segment(page.plan_id)}", None, page.plan_id)
        if page.status != "completed":
            raise Unavailable("The catalog could not plan the scan", fix="Try again.", status=page.status)
        return page

    async def _ask(self, method: str, path: str, body: Any, plan_id: str | None = None) -> wire.PlanPage:
        try:
            reply = await self._asks.request(method, path, body=body, headers=_VENDED)
        except (ServerFailed, RequestRefused, OutcomeUnknown) as error:
            raise _failed() from error
        page = reply.decode(wire.PlanPage)
        if plan_id is not None and page.plan_id is None and page.status == "submitted":
            # Only the first answer names the plan.
            return wire.PlanPage(status=page.status, plan_id=plan_id)
        return page

    def _check(self, page: wire.PlanPage) -> None:
        said, opened = page.read_restrictions, _decode(self._table.restrictions)
        names = [name for name in _CHECKED if name != "cynosure-mappings" or name in said]
        if canonical({name: said.get(name) for name in names}) != canonical(
            {name: opened.get(name) for name in names}
        ):
            raise _changed(self._table)

    def _make_renew(self, first: Credentials) -> Callable[[], Awaitable[Credentials]]:
        async def renew() -> Credentials:
            try:
                reply = await self._asks.request("GET", f"{self._path}/credentials", headers=_VENDED)
            except (ServerFailed, RequestRefused) as error:
                raise _failed() from error
            given = reply.decode(wire.GivenCredentials).storage_credentials
            self._renewed += 1
            newer, _ = read_credentials(
                given,
                Location.parse(self._table.places[0]).scheme,
                1 + self._renewed,
                name=str(self._table.name),
            )
            # Addresses and regions come with the first ones only.
            properties = {**first.properties, **newer.properties}
            return Credentials(newer.number, properties, newer.expires_ms)

        return renew


async def _open(asks: Asks, name: TableName, travel: TimeTravel | None) -> OpenedTable:
    try:
        reply = await asks.request("GET", _path(name, "tables"), query={"snapshots": "all"})
    except BadInput as error:
        # A name that nothing can have.
        raise NotFound("No such table") from error
    except (ServerFailed, RequestRefused) as error:
        raise _failed() from error
    return open_table(name, reply.decode(wire.LoadedTable), travel)


def _path(name: TableName, kind: str) -> str:
    return f"{_namespace_path(name.catalog, name.namespace)}/{kind}/{segment(name.name)}"


def _namespace_path(catalog: str, namespace: tuple[str, ...]) -> str:
    if not namespace or not catalog:
        raise NoSuchRelation(
            "A name without a catalog or namespace",
            fix="Name it `catalog.namespace.table`, or send catalog and namespace with the statement.",
        )
    return f"{_BASE}/{segment(catalog)}/namespaces/{segment(_BETWEEN.join(namespace))}"


def _decode(json: bytes) -> dict[str, Any]:
    return dict(msgspec.json.decode(json)) if json else {}


def _raise_if_hidden(name: TableName, error: CynosureError) -> None:
    """A policy that does not fit is told, so that it can be corrected; rights that are missing are not."""
    if isinstance(error, Forbidden) and error.message.startswith(_BY_POLICY):
        found = _POLICIES.search(error.message)
        raise PolicyHides(
            "A policy hides this table because it cannot be applied",
            fix=error.fix or "Have the policy or the table corrected.",
            table=str(name),
            policies=found[1] if found else "",
        ) from error


def _no_such(name: TableName) -> NoSuchRelation:
    return NoSuchRelation(
        "No such table or view, or it is not yours to see",
        fix="Check its name with SHOW TABLES, and your privileges.",
        name=str(name),
    )


def _changed(table: OpenedTable) -> Conflict:
    return Conflict(
        "The table or its policies changed while the statement was planned",
        fix="Send the statement again.",
        table=str(table.name),
    )


def _not_for_gateway(name: TableName) -> PolicyHides:
    return PolicyHides(
        "A policy needs a mapping table that the gateway's own principal may not read completely",
        fix="Give the gateway's principal TABLE_READ_DATA on it, and let no policy restrict it there.",
        table=str(name),
    )


def _failed() -> Unavailable:
    return Unavailable("The catalog failed", fix="Try again, and look for the reason in the catalog's log.")
