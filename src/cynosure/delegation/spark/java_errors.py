"""What Java and Spark raise, as our errors: by the classes in the chain of causes.

A maintainer must not break: that a commit's outcome is unknown is never taken for a failure, and what is kept
of an error's text holds no credential.
"""

import re
from typing import Final

from cynosure.common.errors import CynosureError, Forbidden, NotFound, OutcomeUnknown, Unavailable
from cynosure.delegation.failures import JobFailed, JobPostponed
from cynosure.spark.java_chain import read_chain

_SECRET: Final = re.compile(
    r"(?i)((?:secret|password|token|credential|signature|access-?key(?:-?id)?)[\w.-]*\s*[=:]\s*)\S+"
)
_TEXT: Final = 500

_CONFLICT: Final = ("CommitFailedException",)
_UNKNOWN: Final = ("CommitStateUnknownException",)
_MISSING: Final = ("NoSuchTableException", "NoSuchNamespaceException", "NoSuchViewException")
_REFUSED: Final = ("ForbiddenException", "NotAuthorizedException")
_INVALID: Final = (
    "ValidationException",
    "IllegalArgumentException",
    "AnalysisException",
    "ParseException",
    "UnsupportedOperationException",
)
_PASSING: Final = (
    "ServiceUnavailableException",
    "ServiceFailureException",
    "RESTException",
    "ConnectException",
    "SocketTimeoutException",
    "UnknownHostException",
    "SdkClientException",
    "S3Exception",
    "UncheckedIOException",
    "RuntimeIOException",
)


def to_error(raised: BaseException) -> CynosureError:
    """The error of our tree for whatever a driver job raised."""
    if isinstance(raised, CynosureError):
        return raised
    names, text = read_chain(raised)
    details = {"reason": _SECRET.sub(r"\1***", text)[:_TEXT], "raised": names[-1] if names else ""}

    def has(kinds: tuple[str, ...]) -> bool:
        return any(name.rpartition(".")[2] in kinds for name in names)

    # The order counts: an outcome that is unknown has causes that look like passing troubles.
    if has(_UNKNOWN):
        return OutcomeUnknown("Whether a change of the table was made is not known", **details)
    if has(_CONFLICT):
        return JobPostponed("Others changed the table meanwhile", code="COMMIT_CONFLICT", **details)
    if has(_MISSING):
        return NotFound("The table is not there any more", **details)
    if has(_REFUSED):
        return Forbidden(
            "The catalog refused the service's principal", fix="Grant what the task needs.", **details
        )
    if has(_PASSING):
        return Unavailable("Spark could not reach the catalog or the files", **details)
    if has(_INVALID):
        return JobFailed("Spark refused the job", code="SPARK_REFUSED", status=409, **details)
    return JobPostponed("The job failed on Spark", code="SPARK_FAILED", **details)
