"""A file system for a place, with what the catalog gave: for Parquet's own reader, here and on executors.

A maintainer must not break: nothing but what the catalog gave is shown to a store, and credentials are taken
anew for each round of work, because a round may take long.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from cynosure.common.errors import Unavailable
from cynosure.delegation.jobs.port import JobFailed

_S3 = ("s3", "s3a", "s3n")


def open_place(place: str, properties: Mapping[str, str]) -> tuple[Any, str]:
    """A file system, and where the place is in it."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return pafs.LocalFileSystem(), unquote(parts.path).rstrip("/")
    if parts.scheme in _S3:
        endpoint = urlsplit(properties.get("s3.endpoint", ""))
        return (
            pafs.S3FileSystem(
                access_key=properties.get("s3.access-key-id"),
                secret_key=properties.get("s3.secret-access-key"),
                session_token=properties.get("s3.session-token"),
                region=properties.get("client.region") or properties.get("s3.region"),
                scheme=endpoint.scheme or None,
                endpoint_override=endpoint.netloc or None,
                force_virtual_addressing=properties.get("s3.path-style-access") != "true",
            ),
            f"{parts.netloc}{parts.path}".rstrip("/"),
        )
    if parts.scheme == "gs":
        token = properties.get("gcs.oauth2.token")
        return pafs.GcsFileSystem(access_token=token), f"{parts.netloc}{parts.path}".rstrip("/")
    raise JobFailed(
        "Directories of such a storage cannot become tables yet",
        code="CONVERSION_REFUSED",
        status=409,
        fix="Use a directory in an S3 or Google Cloud storage, or local files.",
        scheme=parts.scheme,
    )


def list_below(place: str, properties: Mapping[str, str]) -> list[tuple[str, int]]:
    """Paths below a place, and sizes."""
    files, root = open_place(place, properties)
    try:
        found = files.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
    except (OSError, pa.ArrowException) as error:
        raise Unavailable("The directory cannot be listed", reason=str(error)[:300]) from error
    return [
        (each.path.removeprefix(f"{root}/"), each.size)
        for each in found
        if each.type == pafs.FileType.File and not each.path.endswith(".crc")
    ]
