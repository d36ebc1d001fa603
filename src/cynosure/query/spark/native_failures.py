"""What Iceberg's reader raises when files cannot be read, as our errors: by classes, not by what they say.

A maintainer must not break: no text of an exception gets through.
"""

from collections.abc import Sequence
from typing import Final

from cynosure.common.errors import CynosureError
from cynosure.query.errors import NotReadable
from cynosure.storage.errors import StorageRefused, StorageUnavailable

_GONE: Final = frozenset({"NotFoundException", "NoSuchKeyException", "FileNotFoundException"})
_REFUSED: Final = frozenset({"S3Exception", "ForbiddenException", "AccessControlException"})
_UNAVAILABLE: Final = frozenset({"SdkClientException", "ApiCallTimeoutException", "ServiceFailureException"})


def find_storage_error(names: Sequence[str]) -> CynosureError | None:
    """The error for classes of Java, from the outermost to the root; `None` when files are not the reason."""
    found = set(names)
    if found & _GONE:
        return NotReadable("A file of the table is not there any more", fix="Send the statement again.")
    if found & _REFUSED:
        return StorageRefused(
            "The storage refuses a file of the table",
            fix="Send the statement again. Credentials of a native scan are not renewed: for statements that "
            "take longer than they live, set query.spark.scan=isolated, or a longer "
            "storage.credential_lifetime at the catalog.",
        )
    if found & _UNAVAILABLE:
        return StorageUnavailable("The storage of the table does not answer", fix="Send the statement again.")
    return None
