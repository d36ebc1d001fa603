"""Remotes of federated catalogs: how they are, and whether what is known of them is still so."""

from typing import Annotated, Literal

from msgspec import Meta

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.context import caller_of
from cynosure.api.management.context import BASE, catalog_of, name_of
from cynosure.api.management.wire import Camel
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.caller import Caller
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.forget_waiting import forget_waiting
from cynosure.federation.guard.breaker import BreakerState
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.list_waiting import WaitingPage, list_waiting
from cynosure.federation.reconcile import MOST_ENTRIES, Reconciled, reconcile
from cynosure.federation.reconciling.drift import Difference, Kind
from cynosure.federation.status import RemoteStatus, load_remote_status


class RemoteState(Camel, frozen=True, kw_only=True, omit_defaults=False):
    """A remote, as the process that answered sees it. Times are 0 for what has not happened there."""

    catalog: str
    connection_type: str
    uri: str
    reachable: bool
    """Whether it answered just now."""
    problem: str | None
    """The kind of error when it did not."""
    reason: str | None = None
    """What is wrong then."""
    field: str | None = None
    """The part of the connection that says it wrong, if one does."""
    fix: str | None = None
    """What to do about it."""
    breaker: BreakerState
    """`open`: it failed several times and is left alone for now."""
    retry_after_ms: int
    running: int
    waiting: int
    failures: int
    """In a row, up to now."""
    last_success_ms: int
    last_failure_ms: int
    last_error: str | None
    metrics_label: str = ""
    """What metrics, which anybody may read, call the catalog."""


class ReconcileQuery(Camel, frozen=True):
    """How much is compared, from where on, and whether it is mended."""

    dry_run: bool = True
    """Only tell what is different."""
    page_size: Annotated[int, Meta(ge=1, le=MOST_ENTRIES)] = 100
    """Entries of the mirror that one answer is about."""
    page_token: str | None = None
    """Of an earlier answer."""
    waiting: Literal["list", "forget"] | None = None
    """Instead: tell which row filters and masks wait for tables of the remote, page by page; or give those up
    that wait for tables which it does not have any more."""


class GrantLeft(Camel, frozen=True):
    """What a catalog role holds on something that is gone."""

    role: str
    privileges: tuple[str, ...]


class MirrorDifference(Camel, frozen=True, kw_only=True):
    """Something that the remote has otherwise."""

    type: Kind
    path: tuple[str, ...]
    difference: Difference
    moved_to: tuple[str, ...] = ()
    grants: tuple[GrantLeft, ...] = ()
    policies: tuple[str, ...] = ()
    mended: bool = False


class WaitingRestrictions(Camel, frozen=True, kw_only=True):
    """Row filters and masks that wait for something of the remote."""

    type: Literal["table", "namespace", "uuid"]
    """For the next of this name, or for the table with this uuid, wherever it is seen again."""
    path: tuple[str, ...] = ()
    """The name; of a uuid, the namespace whose restrictions these are."""
    uuid: str = ""
    policies: tuple[str, ...] = ()
    """None: they were dropped."""


class ReconcileResponse(Camel, frozen=True, kw_only=True):
    """What a page of the mirror came to."""

    checked: int
    """Entries of the mirror; where something is given up that waits, tables of the remote."""
    differences: tuple[MirrorDifference, ...]
    next_page_token: str | None = None
    waiting: tuple[WaitingRestrictions, ...] = ()
    forgotten: int = 0
    """Of what waited."""
    kept: int = 0
    """Of what waits, because there is a table for it, or may come one."""


class _Remotes:
    """Clients of remotes, looked for when somebody who may has asked for one."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def get(self, catalog: OpenCatalog) -> GuardedRemote:
        return self._catalogs.federation.clients.get(catalog)


def remote_routes(catalogs: Catalogs) -> list[Route]:
    """The routes of remotes."""
    remotes = _Remotes(catalogs)

    async def load(request: Request) -> Response:
        name = name_of(request, "catalogName")
        found = await load_remote_status(catalogs.directory, remotes, caller_of(request), name)
        return Response.json(_describe(found))

    async def compare(request: Request) -> Response:
        caller = caller_of(request)
        query: ReconcileQuery = request.query
        catalog = await catalog_of(catalogs.directory, caller, request)
        if query.waiting is not None:
            return Response.json(await look_after_waiting(catalog, caller, query))
        found = await reconcile(
            remotes,
            catalog,
            caller,
            is_mending=not query.dry_run,
            token=query.page_token or None,
            size=query.page_size,
        )
        return Response.json(_describe_differences(found))

    async def look_after_waiting(
        catalog: OpenCatalog, caller: Caller, query: ReconcileQuery
    ) -> ReconcileResponse:
        if query.waiting == "forget":
            done = await forget_waiting(remotes, catalog, caller)
            return ReconcileResponse(
                checked=done.asked, differences=(), forgotten=done.forgotten, kept=done.kept
            )
        token = query.page_token or None
        return _describe_waiting(await list_waiting(catalog, caller, token=token, size=query.page_size))

    base = f"{BASE}/cynosure/catalogs/{{catalogName}}"
    return [
        Route(
            "GET",
            f"{base}/remote",
            load,
            operation_id="loadRemoteStatus",
            summary="How the remote of a federated catalog is; also one that does not answer is answered "
            "with 200",
            tags=("cynosure",),
            responses={200: RemoteState},
        ),
        Route(
            "POST",
            f"{base}/reconcile",
            compare,
            operation_id="reconcileCatalog",
            # Mending twice is mending once.
            changes_nothing=True,
            summary="Compare what is known of a remote with what it has, page by page, and mend it if wanted",
            tags=("cynosure",),
            query=ReconcileQuery,
            responses={200: ReconcileResponse},
        ),
    ]


def _describe(found: RemoteStatus) -> RemoteState:
    health, advice = found.health, found.advice
    return RemoteState(
        catalog=found.catalog,
        connection_type=found.connection_type,
        uri=found.uri,
        reachable=found.is_reachable,
        problem=found.problem,
        reason=None if advice is None else advice.reason,
        field=None if advice is None else advice.field,
        fix=None if advice is None else advice.fix,
        breaker=health.breaker,
        retry_after_ms=health.retry_after_ms,
        running=health.running,
        waiting=health.waiting,
        failures=health.failures,
        last_success_ms=health.last_success_ms,
        last_failure_ms=health.last_failure_ms,
        last_error=health.last_error,
        metrics_label=found.mark,
    )


def _describe_waiting(found: WaitingPage) -> ReconcileResponse:
    waiting = (
        WaitingRestrictions(type=each.kind, path=each.path, uuid=each.uuid, policies=each.policies)
        for each in found.entries
    )
    return ReconcileResponse(
        checked=0, differences=(), waiting=tuple(waiting), next_page_token=found.next_token
    )


def _describe_differences(found: Reconciled) -> ReconcileResponse:
    return ReconcileResponse(
        checked=found.checked,
        differences=tuple(
            MirrorDifference(
                type=each.kind,
                path=each.path,
                difference=each.difference,
                moved_to=each.moved_to,
                grants=tuple(GrantLeft(grant.role, grant.privileges) for grant in each.grants),
                policies=each.policies,
                mended=each.is_mended,
            )
            for each in found.drifts
        ),
        next_page_token=found.next_token,
    )
