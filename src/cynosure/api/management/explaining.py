"""Why a principal may or may not do something."""

from typing import TypeVar

from msgspec import Struct, convert

from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.context import caller_of
from cynosure.api.management.context import BASE
from cynosure.api.management.wire import Camel
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.auth.access.explain import Explanation
from cynosure.auth.identities import Identities
from cynosure.catalog.explain import Place, Question, explain

T = TypeVar("T", bound=Struct)


class AccessTarget(Camel, frozen=True, kw_only=True):
    """What an operation is about; only what the operation needs is looked at."""

    catalog: str | None = None
    namespace: list[str] | None = None
    """Its levels; left out, the root of the catalog."""
    table: str | None = None
    view: str | None = None
    policy: str | None = None
    principal: str | None = None
    principal_role: str | None = None
    catalog_role: str | None = None

    def place(self) -> Place:
        """What the operation understands."""
        return Place(
            catalog=self.catalog or "",
            namespace=tuple(self.namespace or ()),
            table=self.table or "",
            view=self.view or "",
            policy=self.policy or "",
            principal=self.principal or "",
            principal_role=self.principal_role or "",
            catalog_role=self.catalog_role or "",
        )


class ExplainAccessRequest(Camel, frozen=True, kw_only=True):
    """May somebody do something?"""

    operation: str
    """As in events: `load-table`, `grant-on-catalog` …"""
    target: AccessTarget | None = None
    secondary: AccessTarget | None = None
    """Of operations with two targets, the second one: where a table is renamed to."""
    principal: str | None = None
    """Left out: the caller, with the roles that are active."""
    updates: list[str] | None = None
    """Of `commit-table`, the actions of its updates."""


class AccessNeed(Camel, frozen=True):
    """What the operation needs of one target."""

    target_kind: str
    target: str
    privileges: tuple[str, ...]


class AccessStep(Camel, frozen=True, omit_defaults=False):
    """The grant that meets a need."""

    needed: str
    held: str
    principal_role: str
    catalog_role: str
    on_kind: str
    on: str
    target: str


class AccessMissing(Camel, frozen=True):
    """A need that is not met."""

    privilege: str
    target_kind: str
    target: str


class AccessRemedy(Camel, frozen=True):
    """Privileges of which one, granted there to a role of the principal, would meet a need."""

    missing: str
    privileges: tuple[str, ...]
    on_kind: str
    on: str


class AccessRestriction(Camel, frozen=True):
    """A policy that hides something of a table from the principal."""

    policy: str
    type: str
    on_kind: str
    on: str
    effect: str


class AccessExplanation(Camel, frozen=True, omit_defaults=False):
    """The decision, and what it rests on or what is missing."""

    allowed: bool
    principal: str
    roles: tuple[str, ...]
    operation: str
    needs: tuple[AccessNeed, ...]
    path: tuple[AccessStep, ...]
    missing: tuple[AccessMissing, ...]
    remedies: tuple[AccessRemedy, ...]
    reason: str
    restrictions: tuple[AccessRestriction, ...]


def describe_explanation(found: Explanation) -> AccessExplanation:
    """An explanation as it is answered."""
    return AccessExplanation(
        allowed=found.is_allowed,
        principal=found.principal,
        roles=found.roles,
        operation=found.operation,
        needs=_as(AccessNeed, found.needs),
        path=_as(AccessStep, found.path),
        missing=_as(AccessMissing, found.missing),
        remedies=_as(AccessRemedy, found.remedies),
        reason=found.reason,
        restrictions=_as(AccessRestriction, found.restrictions),
    )


def _as(shape: type[T], found: tuple[Struct, ...]) -> tuple[T, ...]:
    return tuple(convert(each, shape, from_attributes=True) for each in found)


def explain_routes(catalogs: Catalogs, identities: Identities) -> list[Route]:
    """The route of explanations."""

    async def explain_access(request: Request) -> Response:
        body: ExplainAccessRequest = request.body
        question = Question(
            operation=body.operation,
            target=body.target.place() if body.target else Place(),
            secondary=body.secondary.place() if body.secondary else None,
            principal=body.principal,
            updates=tuple(body.updates or ()),
        )
        caller = caller_of(request)
        for place in (question.target, question.secondary):
            if place is not None and place.catalog and place.namespace:
                catalog = await catalogs.directory.open_for(caller, place.catalog)
                await catalogs.see(catalog, caller, place.namespace, table=place.table, view=place.view)
        found = await explain(catalogs.directory, identities, caller, question)
        return Response.json(describe_explanation(found))

    return [
        Route(
            "POST",
            f"{BASE}/cynosure/explain-access",
            explain_access,
            operation_id="explainAccess",
            changes_nothing=True,
            summary="Why a principal may or may not do something, and what would let it",
            tags=("cynosure",),
            request=ExplainAccessRequest,
            responses={200: AccessExplanation},
        )
    ]
