"""The one map from our error tree to HTTP: status, Iceberg error type, retry advice.

A maintainer must not break: `OutcomeUnknown` is 504 `CommitStateUnknownException` and nothing else
(an Iceberg client then keeps its files), and only what certainly applied nothing may be 409, 429 or
503, because clients retry those. A test walks the whole tree and fails when a type is not listed.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from msgspec import Struct

from cynosure.api.messages import Response
from cynosure.auth import errors as auth
from cynosure.auth.require import AccessDenied
from cynosure.auth.tokens.errors import TokenRefused
from cynosure.catalog import errors as catalog
from cynosure.catalog import purge_errors as purging
from cynosure.client.errors import (
    IdempotencyWindowExpired,
    KeyConflict,
    RequestRefused,
    ServerFailed,
    StillInProgress,
)
from cynosure.common import errors as tree
from cynosure.delegation.failures import JobFailed, JobPostponed
from cynosure.federation import errors as federation
from cynosure.federation.mirror.seen import SeenMeanwhile
from cynosure.federation.remotes.extras import MissingExtra
from cynosure.iceberg import errors as iceberg
from cynosure.idempotency.errors import CommitInProgress, RequestInProgress
from cynosure.query import errors as query
from cynosure.storage.errors import FileMissing, StorageRefused, StorageUnavailable


class MethodNotAllowed(tree.CynosureError):
    """The path exists, but not with this method."""

    def __init__(self, message: str, *, allow: tuple[str, ...], fix: str) -> None:
        super().__init__(message, fix=fix, allow=allow)
        self.allow = allow


class UnsupportedMediaType(tree.CynosureError):
    """The body is not of the media type this operation reads."""


class NotServed(tree.CynosureError):
    """The protocol has it, this server does not."""


class SlowRequest(tree.CynosureError):
    """The body did not arrive in time. Nothing was applied."""


class ClientGone(tree.CynosureError):
    """The client closed the connection before its request was complete. Nothing was applied."""


class Answer(NamedTuple):
    """How one type of error is answered."""

    status: int
    type: str
    retry_after_s: int | None = None


_INTERNAL: Final = Answer(500, "InternalServerError")

ANSWERS: Final[dict[type[tree.CynosureError], Answer]] = {
    tree.CynosureError: _INTERNAL,
    tree.BadInput: Answer(400, "BadRequestException"),
    tree.BadPageToken: Answer(400, "BadRequestException"),
    tree.TooLarge: Answer(413, "PayloadTooLargeException"),
    tree.Expired: Answer(410, "ExpiredException"),
    tree.NotAuthenticated: Answer(401, "NotAuthorizedException"),
    tree.Forbidden: Answer(403, "ForbiddenException"),
    tree.NotFound: Answer(404, "NotFoundException"),
    tree.AlreadyExists: Answer(409, "AlreadyExistsException"),
    tree.Conflict: Answer(409, "CommitFailedException"),
    tree.KeyReused: Answer(422, "idempotency_key_conflict"),
    RequestInProgress: Answer(409, "request_in_progress", retry_after_s=1),
    CommitInProgress: Answer(504, "CommitStateUnknownException", retry_after_s=1),
    tree.Unavailable: Answer(503, "ServiceUnavailableException", retry_after_s=1),
    tree.Contended: Answer(503, "ServiceUnavailableException", retry_after_s=1),
    tree.LeaseLost: Answer(503, "ServiceUnavailableException", retry_after_s=2),
    tree.ClockFault: Answer(503, "ServiceUnavailableException", retry_after_s=5),
    tree.OutcomeUnknown: Answer(504, "CommitStateUnknownException"),
    tree.Damaged: _INTERNAL,
    tree.MissingObject: _INTERNAL,
    tree.CorruptObject: _INTERNAL,
    tree.NewerFormat: _INTERNAL,
    tree.UnknownType: _INTERNAL,
    tree.Misconfigured: _INTERNAL,
    # Iceberg clients choose their exception by this type, or by the status alone.
    catalog.NoSuchCatalog: Answer(404, "NoSuchWarehouseException"),
    catalog.NoSuchNamespace: Answer(404, "NoSuchNamespaceException"),
    catalog.NoSuchTable: Answer(404, "NoSuchTableException"),
    catalog.NotImported: Answer(503, "ServiceUnavailableException", retry_after_s=1),
    catalog.NoSuchView: Answer(404, "NoSuchViewException"),
    catalog.NoSuchGenericTable: Answer(404, "NoSuchTableException"),
    catalog.NoSuchPolicy: Answer(404, "NoSuchPolicyException"),
    catalog.NoSuchTarget: Answer(404, "NoSuchTargetException"),
    catalog.NoSuchMapping: Answer(404, "NoSuchMappingException"),
    catalog.PolicyExists: Answer(409, "AlreadyExistsException"),
    catalog.PolicyTypeAttached: Answer(409, "ConflictPolicyAttachmentException"),
    catalog.PolicyVersionMismatch: Answer(409, "PolicyVersionMismatchException"),
    catalog.PolicyInUse: Answer(400, "PolicyInUseException"),
    catalog.InvalidPolicy: Answer(400, "InvalidPolicyException"),
    catalog.NotAttachable: Answer(400, "PolicyAttachException"),
    catalog.RestrictedByPolicy: Answer(403, "ForbiddenException"),
    # Not 409: clients would refresh and send the same change again.
    catalog.RestrictedColumn: Answer(400, "ValidationException"),
    catalog.NoSuchPlan: Answer(404, "NoSuchPlanIdException"),
    catalog.NoSuchPlanTask: Answer(404, "NoSuchPlanTaskException"),
    catalog.NoSuchTask: Answer(404, "NotFoundException"),
    catalog.NoSuchCatalogRole: Answer(404, "NotFoundException"),
    catalog.CatalogRoleExists: Answer(409, "AlreadyExistsException"),
    catalog.NoSuchDropped: Answer(404, "NotFoundException"),
    catalog.RenameTargetTaken: Answer(409, "AlreadyExistsException"),
    catalog.CatalogExists: Answer(409, "AlreadyExistsException"),
    catalog.NamespaceExists: Answer(409, "AlreadyExistsException"),
    catalog.TableExists: Answer(409, "AlreadyExistsException"),
    catalog.ViewExists: Answer(409, "AlreadyExistsException"),
    catalog.GenericTableExists: Answer(409, "AlreadyExistsException"),
    catalog.NotEmpty: Answer(409, "NamespaceNotEmptyException"),
    catalog.NamespaceNotEmpty: Answer(409, "NamespaceNotEmptyException"),
    # As Apache Polaris has it on its management API, the only one that drops catalogs.
    catalog.CatalogNotEmpty: Answer(400, "BadRequestException"),
    catalog.CascadeBlocked: Answer(409, "NamespaceNotEmptyException"),
    catalog.CascadeDenied: Answer(403, "ForbiddenException"),
    catalog.CascadeUnderWay: Answer(504, "CommitStateUnknownException"),
    catalog.CatalogClosed: Answer(409, "CommitFailedException"),
    catalog.LocationRefused: Answer(403, "ForbiddenException"),
    catalog.CatalogLocationRefused: Answer(400, "ValidationException"),
    catalog.OwnedElsewhere: Answer(400, "BadRequestException"),
    catalog.OutdatedNotification: Answer(409, "AlreadyExistsException"),
    catalog.DelegationOff: Answer(403, "ForbiddenException"),
    purging.NoSuchTombstone: Answer(404, "NotFoundException"),
    purging.PurgeOff: Answer(403, "ForbiddenException"),
    purging.PurgeConflict: Answer(409, "CommitFailedException"),
    purging.LocationShared: Answer(409, "LocationSharedException"),
    purging.PurgeLifted: Answer(409, "CommitFailedException"),
    purging.PurgeNotOrdered: Answer(503, "ServiceUnavailableException", retry_after_s=5),
    purging.PurgeFailed: Answer(502, "BadGatewayException"),
    purging.PurgeIncomplete: _INTERNAL,
    # Not "unknown": it is known that the table is dropped, and clients must not take it for a lost commit.
    purging.PurgePending: Answer(504, "PurgeUnderWayException"),
    catalog.Unprocessable: Answer(422, "UnprocessableEntityException"),
    catalog.InvalidName: Answer(400, "BadRequestException"),
    # The token endpoint answers in OAuth's own shape; elsewhere nobody asks for tokens.
    TokenRefused: Answer(400, "BadRequestException"),
    AccessDenied: Answer(403, "ForbiddenException"),
    auth.NoSuchRealm: Answer(404, "NotFoundException"),
    auth.NoSuchPrincipal: Answer(404, "NotFoundException"),
    auth.NoSuchPrincipalRole: Answer(404, "NotFoundException"),
    auth.PrincipalExists: Answer(409, "AlreadyExistsException"),
    auth.PrincipalRoleExists: Answer(409, "AlreadyExistsException"),
    auth.BuiltIn: Answer(400, "BadRequestException"),
    auth.RealmClosed: Answer(409, "CommitFailedException"),
    auth.RealmNotEmpty: Answer(409, "NamespaceNotEmptyException"),
    iceberg.InvalidMetadata: Answer(400, "IllegalArgumentException"),
    iceberg.DuplicateDialect: Answer(400, "IllegalArgumentException"),
    iceberg.InvalidManifest: Answer(400, "IllegalArgumentException"),
    iceberg.InvalidUpdate: Answer(400, "ValidationException"),
    iceberg.ColumnExists: Answer(409, "AlreadyExistsException"),
    iceberg.RequirementFailed: Answer(409, "CommitFailedException"),
    iceberg.StaleSnapshot: Answer(409, "CommitFailedException"),
    FileMissing: Answer(404, "NotFoundException"),
    StorageUnavailable: Answer(503, "ServiceUnavailableException", retry_after_s=2),
    StorageRefused: Answer(403, "ForbiddenException"),
    MethodNotAllowed: Answer(405, "MethodNotAllowedException"),
    UnsupportedMediaType: Answer(415, "UnsupportedMediaTypeException"),
    NotServed: Answer(501, "UnsupportedOperationException"),
    SlowRequest: Answer(408, "RequestTimeoutException"),
    ClientGone: Answer(400, "BadRequestException"),
    # Our own call to another server went wrong in a way that is not this client's doing.
    RequestRefused: _INTERNAL,
    KeyConflict: _INTERNAL,
    StillInProgress: Answer(504, "CommitStateUnknownException"),
    IdempotencyWindowExpired: Answer(504, "CommitStateUnknownException"),
    ServerFailed: Answer(502, "BadGatewayException"),
    # Tasks fail and are postponed where they are worked on; nobody waits for an answer there.
    JobFailed: _INTERNAL,
    JobPostponed: _INTERNAL,
    federation.RemoteUnavailable: Answer(503, "ServiceUnavailableException", retry_after_s=2),
    federation.RemoteBusy: Answer(503, "ServiceUnavailableException", retry_after_s=2),
    federation.FederationOff: Answer(503, "ServiceUnavailableException", retry_after_s=30),
    SeenMeanwhile: Answer(503, "ServiceUnavailableException", retry_after_s=1),
    # Not 401 or 403: the caller's own credentials are good.
    federation.RemoteRefused: Answer(502, "BadGatewayException"),
    federation.RemoteMisbehaved: Answer(502, "BadGatewayException"),
    federation.RemoteFileMissing: Answer(404, "NotFoundException"),
    federation.NamedFileMissing: Answer(404, "NotFoundException"),
    federation.InCircle: Answer(508, "LoopDetectedException"),
    federation.RemoteConflict: Answer(409, "CommitFailedException"),
    federation.NotIceberg: Answer(404, "NoSuchTableException"),
    MissingExtra: Answer(400, "BadRequestException"),
    federation.ReadOnly: Answer(403, "ForbiddenException"),
    federation.BeingMoved: Answer(503, "ServiceUnavailableException", retry_after_s=30),
    federation.NotShown: Answer(403, "ForbiddenException"),
    federation.NotOffered: Answer(501, "UnsupportedOperationException"),
    # Not 504: it is known that it was done. Iceberg clients keep their files with both.
    federation.DoneUnseen: Answer(502, "BadGatewayException"),
    query.SqlError: Answer(400, "BadSqlException"),
    query.NotAllowed: Answer(400, "NotAllowedException"),
    query.NoSuchRelation: Answer(404, "NoSuchTableException"),
    query.PolicyHides: Answer(403, "ForbiddenException"),
    # Not 5xx: what the statement says, or the time and memory that it may have, is the reason. Whoever sends
    # it again by itself, as clients do after 502 to 504, would only hear the same.
    query.QueryFailed: Answer(422, "QueryFailedException"),
    query.ScanBroken: Answer(422, "QueryFailedException"),
    query.DeadlinePassed: Answer(422, "DeadlinePassedException"),
    query.OutOfMemory: Answer(422, "OutOfMemoryException"),
    query.NotReadable: Answer(422, "NotReadableException"),
    query.QueryCancelled: Answer(409, "QueryCanceledException"),
    query.EngineUnavailable: Answer(503, "ServiceUnavailableException", retry_after_s=2),
    query.QueueFull: Answer(429, "TooManyRequestsException", retry_after_s=2),
}

AS_ANCESTOR: Final = frozenset(
    {
        "cynosure.server.supervisor.ChildFailed",
        "cynosure.api.delegation.errors.NoSuchTask",
        "cynosure.api.delegation.errors.WrongRealm",
        "cynosure.api.delegation.errors.WrongClient",
        "cynosure.api.delegation.errors.NoScope",
        "cynosure.query.scan.row_filter.NotUnderstood",
        "cynosure.query.spark.failures.ScanFailed",
    }
)
"""Types, by dotted name because what is above is unknown here, that are answered as their nearest listed
ancestor, on purpose. Everything else is in `ANSWERS`."""


class ErrorModel(Struct, frozen=True):
    """The error of the Iceberg REST protocol."""

    message: str
    type: str
    code: int


class ErrorEnvelope(Struct, frozen=True):
    """The body of every answer with a status of 400 or above."""

    error: ErrorModel


Respond = Callable[[Exception, str], Response]
"""The answer to an error, given the id of the request."""


def get_answer(error_type: type[BaseException]) -> Answer:
    """The answer to a type of error; that of its nearest listed ancestor, 500 for strangers."""
    for ancestor in error_type.__mro__:
        if (answer := ANSWERS.get(ancestor)) is not None:
            return answer
    return _INTERNAL


def describe(error: tree.CynosureError, answer: Answer, request_id: str) -> str:
    """The text a client reads: what and how to fix it.

    What varies is told only where it is the client's own input (4xx). Details of a 5xx name our
    insides; they are in the log, under the request id.
    """
    if answer.status < 500:
        return str(error)
    text = f"{error.message}. {error.fix}" if error.fix else error.message
    return f"{text} (request {request_id})" if request_id else text


def to_response(error: Exception, request_id: str) -> Response:
    """The envelope for an error of our tree, or a 500 without insides for any other."""
    answer = get_answer(type(error))
    if isinstance(error, tree.CynosureError):
        message = describe(error, answer, request_id)
    else:
        message = f"The server failed in an unexpected way. Report request id {request_id or 'unknown'}"
    headers: list[tuple[bytes, bytes]] = []
    if answer.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % answer.retry_after_s))
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", ", ".join(error.allow).encode("ascii")))
    if isinstance(error, (SlowRequest, tree.TooLarge)):
        # The rest of the body is still on its way; reading it on would let the client go on sending.
        headers.append((b"connection", b"close"))
    envelope = ErrorEnvelope(ErrorModel(message, answer.type, answer.status))
    return Response.json(envelope, status=answer.status, headers=headers)
