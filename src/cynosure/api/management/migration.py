"""The way of a federated catalog into our own hands, step by step (`cynosure.federation.migration`)."""

from typing import Final

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.context import caller_of
from cynosure.api.management.context import BASE, catalog_of
from cynosure.api.management.wire import Camel
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.names import check_name, check_namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.handover import Chosen
from cynosure.federation.migration.migrate import Step, StepName, migrate
from cynosure.federation.migration.steps import Outcome, Told
from cynosure.federation.reconciling.drift import Kind

_MOST_CHOSEN: Final = 1_000
"""Namespaces and tables: what is chosen is kept in one entry."""


class MigrationStep(Camel, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do next."""

    step: StepName
    type: Kind = "namespace"
    """Of `survey` and `take`: what of the namespace."""
    namespace: tuple[str, ...] = ()
    """Of `survey` and `take`: where; left out, the top."""
    page_token: str | None = None
    """Of an earlier answer to the same step."""
    namespaces: tuple[tuple[str, ...], ...] = ()
    """Of `survey`, `moved` and `begin`: what is in these; without namespaces and tables, everything."""
    tables: tuple[tuple[str, ...], ...] = ()
    """Of `survey`, `moved` and `begin`: single tables and views, each as namespace and name."""
    into: str = ""
    """Of `survey`, `moved` and `begin`: the catalog that gets them; left out, this one becomes ours."""
    keep_remote: bool = False
    """Of `begin`: what is set aside stays at the remote, under its other name."""
    leave_behind: bool = False
    """Of `begin`: what cannot be moved stays the remote's."""
    leave_policies: bool = False
    """Of `survey` and `begin`, with `into`: row filters and masks stay behind."""
    writers_stopped: bool = False
    """Of `begin`: nobody writes at the remote until it is done."""


class MovedObject(Camel, frozen=True):
    """What became of one object."""

    type: Kind
    path: tuple[str, ...]
    outcome: Outcome
    reason: str = ""


class MigrationState(Camel, frozen=True, kw_only=True, omit_defaults=False):
    """How far a migration is, and what the step did."""

    phase: str
    """`none`, `taking`, `giving`, `releasing`, `ending` (it is being given up), or `done`."""
    objects: tuple[MovedObject, ...]
    next_page_token: str | None
    into: str | None = None
    """The catalog that gets the tables; none where the catalog itself becomes ours."""
    room: int | None = None
    """How many locations that one can have besides those that it has."""


class _Remotes:
    """Clients of remotes, looked for when somebody who may has asked for one."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs

    def get(self, catalog: OpenCatalog) -> GuardedRemote:
        return self._catalogs.federation.clients.get(catalog)


def migration_routes(catalogs: Catalogs) -> list[Route]:
    """The route of migrations."""
    remotes = _Remotes(catalogs)

    async def step(request: Request) -> Response:
        caller = caller_of(request)
        body: MigrationStep = request.body
        catalog = await catalog_of(catalogs.directory, caller, request)
        return Response.json(
            _describe(await migrate(catalogs.directory, remotes, catalog, caller, _read(body)))
        )

    return [
        Route(
            "POST",
            f"{BASE}/cynosure/catalogs/{{catalogName}}/migration",
            step,
            operation_id="migrateCatalog",
            # Every step finds out itself what of it was done.
            changes_nothing=True,
            summary="One step of a migration: a federated catalog becomes one of ours, with tables, grants "
            "and policies; or some of its tables go into another catalog",
            tags=("cynosure",),
            request=MigrationStep,
            responses={200: MigrationState},
        )
    ]


def _read(body: MigrationStep) -> Step:
    if len(body.tables) + len(body.namespaces) > _MOST_CHOSEN:
        raise BadInput(
            "Too much is chosen one by one",
            field="tables",
            fix=f"Choose at most {_MOST_CHOSEN} namespaces and tables, or everything.",
        )
    return Step(
        name=body.step,
        kind=body.type,
        namespace=check_namespace(body.namespace) if body.namespace or body.type != "namespace" else (),
        token=body.page_token or None,
        chosen=Chosen(
            tuple(check_namespace(each, field="namespaces") for each in body.namespaces),
            tuple(_check_table(each) for each in body.tables),
        ),
        into=body.into,
        keeps_remote=body.keep_remote,
        leaves_behind=body.leave_behind,
        leaves_policies=body.leave_policies,
        is_quiet=body.writers_stopped,
    )


def _check_table(path: tuple[str, ...]) -> tuple[str, ...]:
    check_namespace(path[:-1], field="tables")
    check_name(path[-1], field="tables")
    return path


def _describe(told: Told) -> MigrationState:
    return MigrationState(
        phase=told.phase,
        objects=tuple(MovedObject(each.kind, each.path, each.outcome, each.reason) for each in told.lines),
        next_page_token=told.next_token,
        into=told.into,
        room=told.room,
    )
