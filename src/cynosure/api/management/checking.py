"""Whether the storage of a catalog works, step by step."""

from msgspec import convert

from cynosure.api.iceberg.context import caller_of
from cynosure.api.management.context import BASE, name_of
from cynosure.api.management.wire import Camel
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.catalog.checking.steps import Outcome
from cynosure.catalog.directory import Directory
from cynosure.catalog.operations import check_storage as operation


class StorageStep(Camel, frozen=True, omit_defaults=False):
    """One thing that was tried."""

    name: str
    """`write`, `read`, `list`, `create-once`, `delete`: as the server; `read-write-credentials`,
    `read-only-credentials`, `signing`, `bulk-deletes`: as its clients; `clean-up` if that failed."""
    location: str
    outcome: Outcome
    duration_ms: int
    message: str
    """What went wrong, or why it was not tried."""
    fix: str
    """What to do about it."""
    details: dict[str, str]
    """What the storage said."""


class StorageCheck(Camel, frozen=True, omit_defaults=False):
    """What came of a check."""

    catalog: str
    storage_type: str
    ok: bool
    """Whether nothing failed."""
    steps: tuple[StorageStep, ...]


def describe_check(found: operation.StorageCheck) -> StorageCheck:
    """A check as it is answered."""
    steps = tuple(convert(each, StorageStep, from_attributes=True) for each in found.steps)
    return StorageCheck(found.catalog, found.storage_type, found.is_ok, steps)


def check_routes(directory: Directory) -> list[Route]:
    """The route of checks."""

    async def check(request: Request) -> Response:
        name = name_of(request, "catalogName")
        return Response.json(
            describe_check(await operation.check_storage(directory, caller_of(request), name))
        )

    return [
        Route(
            "POST",
            f"{BASE}/cynosure/catalogs/{{catalogName}}/check-storage",
            check,
            operation_id="checkStorage",
            changes_nothing=True,
            summary="Try whether the storage of a catalog works, for the server and for its clients; also a "
            "storage that does not is answered with 200",
            tags=("cynosure",),
            responses={200: StorageCheck},
        )
    ]
