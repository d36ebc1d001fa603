"""What Java and Spark raise, as our errors: by the classes in the chain of causes.

A maintainer must not break: that a commit's outcome is unknown is never taken for a failure, and what is kept
of an error's text holds no credential.
"""

import re
from typing import Any, Final

from cynosure.common.errors import CynosureError, Forbidden, NotFound, OutcomeUnknown, Unavailable
from cynosure.delegation.failures import JobFailed, JobPostponed

_CLASS: Final = re.compile(r"\b(?:[a-z][\w]*\.){2,}[A-Z]\w*")
_SECRET: Final = re.compile(
    r"(?i)((?:secret|password|token|credential|signature|access-?key(?:-?id)?)[\w.-]*\s*[=:]\s*)\S+"
)
_MOST: Final = 20
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
    names, text = _read_chain(raised)
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


def _read_chain(raised: BaseException) -> tuple[list[str], str]:
    """Class names from the outermost to the root, and what is said."""
    java = getattr(raised, "java_exception", None) or getattr(raised, "_origin", None)
    names: list[str] = []
    texts: list[str] = []
    if java is None:
        text = f"{type(raised).__name__}: {raised}"
        return [type(raised).__name__, *_CLASS.findall(text)[:_MOST]], text
    names.append(type(raised).__name__)
    while java is not None and len(names) < _MOST:
        names.append(_call(java.getClass().getName))
        texts.append(_call(java.getMessage) or "")
        java = java.getCause()
    # A task's failure arrives as text: its classes are in there.
    names += _CLASS.findall(" ".join(texts))[:_MOST]
    return names, next((text for text in reversed(texts) if text), "")


def _call(function: Any) -> str:
    return str(function() or "")
