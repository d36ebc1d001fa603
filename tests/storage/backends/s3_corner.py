"""The S3 server of the suite as a storage configuration, with a prefix of a test's own."""

import uuid
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from cynosure.common.secrets import Secret
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.backends.s3 import S3FileIO
from cynosure.storage.config import S3Storage
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings

PATIENT = StorageSettings()
HASTY = StorageSettings(
    connect_timeout=timedelta(seconds=0.5),
    stall_timeout=timedelta(seconds=0.5),
    operation_timeout=timedelta(seconds=1.5),
    retries=1,
)
"""For tests in which the storage never answers. One that does may take longer on a busy machine."""
RETRYING_ONCE = StorageSettings(retries=1)
"""For tests in which it fails at once."""


class S3Corner(NamedTuple):
    config: S3Storage
    keys: S3Session
    base: Location

    @classmethod
    def at(cls, url: str) -> "S3Corner":
        parts = urlsplit(url)
        base = Location.parse(f"s3://{parts.path.strip('/')}/{uuid.uuid4().hex}/allowed")
        config = S3Storage(
            allowed_locations=(base.text,),
            region=parse_qs(parts.query)["region"][0],
            endpoint=f"{parts.scheme}://{parts.hostname}:{parts.port}",
            path_style_access=True,
        )
        return cls(config, S3Session(parts.username or "", Secret(parts.password or "")), base)

    def open(self, settings: StorageSettings = PATIENT, **changes: object) -> S3FileIO:
        return S3FileIO(replace(self.config, **changes), StaticKeys(self.keys), settings)
