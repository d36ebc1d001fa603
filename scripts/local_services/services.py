"""All services by name, and what is asked of each."""

from typing import Protocol

from local_services.azurite import Azurite
from local_services.hive_metastore import HiveMetastore, find_missing
from local_services.machine import say
from local_services.minio import MinIO
from local_services.moto import Moto
from local_services.postgres import Postgres
from local_services.seaweedfs import SeaweedFS


class Service(Protocol):
    """What `scripts/services` needs to know of one service. All methods run under its lock."""

    @property
    def name(self) -> str: ...

    def start(self) -> None:
        """Install, start and wait until it answers. Does nothing when it already answers."""

    def stop(self) -> None:
        """Stop it. Does nothing when it is not running."""

    def status(self) -> str:
        """One line for a reader; starts with `running` or `stopped`."""

    def env(self) -> dict[str, str]:
        """Variables for tests. Fails when the service was never started."""


_ALL: tuple[Service, ...] = (
    Postgres(),
    SeaweedFS("s3", "CYNOSURE_TEST_S3", has_sts=True),
    SeaweedFS("s3-without-sts", "CYNOSURE_TEST_S3_WITHOUT_STS", has_sts=False),
    MinIO(),
    Azurite(),
    HiveMetastore(),
    Moto(),
)
SERVICES = {service.name: service for service in _ALL}


def list_possible() -> list[Service]:
    """Those that can run here: all, but Hive only with Java, Maven and Linux, which nothing else needs."""
    if not (missing := find_missing()):
        return list(_ALL)
    say(f"leaving out hive, whose tests will fail: {missing}")
    return [service for service in _ALL if service.name != HiveMetastore.name]
