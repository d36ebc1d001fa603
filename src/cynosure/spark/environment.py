"""The variables of the driver's process: what Spark needs, and no way to anybody's credentials.

A maintainer must not break: what a job may touch is what the catalog gave it credentials for. A key that
happens to lie in the service's environment would open more, so none gets through.
"""

import re
import sys
from collections.abc import Mapping
from typing import Final

from cynosure.common.delegated.settings import SparkSettings

_SECRETIVE: Final = re.compile(
    r"^(AWS|AZURE|ARM|GOOGLE|GCLOUD|GCP|CLOUDSDK|CYNOSURE|MINIO|S3)_"
    r"|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|ACCESS_KEY|PRIVATE_KEY|SPARK_REMOTE",
    re.IGNORECASE,
)
_WITH_PASSWORD: Final = re.compile(r"://[^/\s@]*:[^/\s@]+@")
"""An address with a password in it: of a database, or of a proxy."""
_KEPT: Final = frozenset({"CYNOSURE_CACHE_DIR"})
_NOWHERE: Final = {
    # Without them the clients of AWS look into files and ask the machine they run on.
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_HERE: Final = ("127.0.0.1", "localhost", "[::1]")


def is_on_loopback(settings: SparkSettings) -> bool:
    """Whether all of Spark is on this machine: then it listens to this machine only."""
    if settings.remote is not None:
        return False
    if settings.master.startswith("local"):
        return True
    _, _, hosts = settings.master.partition("://")
    return all(each.rpartition(":")[0] in _HERE for each in hosts.split(","))


def make_environment(inherited: Mapping[str, str], settings: SparkSettings) -> dict[str, str]:
    """The environment of a driver."""
    kept = {
        name: value
        for name, value in inherited.items()
        if name in _KEPT or not (_SECRETIVE.search(name) or _WITH_PASSWORD.search(value))
    }
    kept |= _NOWHERE
    # Workers run what "python3" on the path is unless they are told.
    kept["PYSPARK_PYTHON"] = kept["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_on_loopback(settings):
        kept["SPARK_LOCAL_IP"] = "127.0.0.1"
    return kept
