"""The real S3 servers that tests use, as `scripts/services env` names them.

| variable | server | token service |
|---|---|---|
| `CYNOSURE_TEST_S3` | SeaweedFS | gives credentials for a role, by name |
| `CYNOSURE_TEST_MINIO` | MinIO | gives credentials for what the asking key may do; roles have no meaning |
| `CYNOSURE_TEST_S3_WITHOUT_STS` | SeaweedFS | none; signatures are checked |

Each is `http://KEY:SECRET@HOST:PORT/BUCKET?region=REGION#ROLE`, the role only where there is one.

A maintainer must not break: all three check signatures, and the first two enforce session policies; a server
that does not proves nothing about scoping.
"""

import os
import uuid
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import obstore
from msgspec import Struct
from obstore.store import S3Store

VARIABLES: Final = {
    "seaweedfs": "CYNOSURE_TEST_S3",
    "minio": "CYNOSURE_TEST_MINIO",
    "no-sts": "CYNOSURE_TEST_S3_WITHOUT_STS",
}
WITH_STS: Final = ("seaweedfs", "minio")


class S3Server(Struct, frozen=True):
    """One server, and the key that owns everything in it."""

    name: str
    endpoint: str
    region: str
    access_key_id: str
    secret_access_key: str
    bucket: str
    role_arn: str | None = None
    """The role that credentials are asked for; `None` where roles have no meaning or there is no STS."""

    @property
    def has_sts(self) -> bool:
        return self.name in WITH_STS

    @property
    def other_bucket(self) -> str:
        """A bucket that no catalog of a test may use."""
        return f"{self.bucket}-other"

    def storage(self) -> dict[str, Any]:
        """The `storageConfigInfo` of a catalog on it, without locations; it vends where the server can."""
        config: dict[str, Any] = {
            "storageType": "S3",
            "endpoint": self.endpoint,
            "region": self.region,
            "pathStyleAccess": True,
            "accessKeyId": self.access_key_id,
            "secretAccessKey": self.secret_access_key,
        }
        if not self.has_sts:
            config["stsUnavailable"] = True
        if self.role_arn is not None:
            config["roleArn"] = self.role_arn
        return config

    def fresh_location(self, word: str = "tests") -> str:
        """A place in the bucket that nobody has used."""
        return f"s3://{self.bucket}/{word}/{uuid.uuid4().hex}"

    def open_bucket(self) -> S3Store:
        """The bucket, as the owner of the server."""
        return S3Store(
            self.bucket,
            endpoint=self.endpoint,
            region=self.region,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            client_options={"allow_http": True},
        )

    def list_below(self, location: str) -> set[str]:
        """Keys of all objects at a location, whoever wrote them."""
        prefix = f"{location.removeprefix(f's3://{self.bucket}/').rstrip('/')}/"
        return {each["path"] for batch in obstore.list(self.open_bucket(), prefix) for each in batch}

    def delete_below(self, location: str) -> int:
        """Delete what a test has left at a location; how many objects."""
        names = sorted(self.list_below(location))
        obstore.delete(self.open_bucket(), names)
        return len(names)


def parse_s3_server(name: str, url: str) -> S3Server:
    """The server that a URL names."""
    found = urlsplit(url)
    if not (found.username and found.password and found.path.strip("/")):
        raise ValueError(f"{VARIABLES[name]} is not http://KEY:SECRET@HOST:PORT/BUCKET?region=REGION")
    return S3Server(
        name=name,
        endpoint=f"{found.scheme}://{found.hostname}:{found.port}",
        region=parse_qs(found.query)["region"][0],
        access_key_id=found.username,
        secret_access_key=found.password,
        bucket=found.path.strip("/"),
        role_arn=found.fragment or None,
    )


def find_s3_servers() -> dict[str, S3Server]:
    """Those that the environment names, by name."""
    return {
        name: parse_s3_server(name, url)
        for name, variable in VARIABLES.items()
        if (url := os.environ.get(variable))
    }
