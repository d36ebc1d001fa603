"""What a function in the driver's process has: a session, and the worker that it works for.

A maintainer must not break: lease and credentials are asked for where they are kept, each time. The driver
remembers neither.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import Struct

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import LeaseLost
from cynosure.delegation.catalog_access import ClientFiles
from cynosure.delegation.store.port import Receipt
from cynosure.spark.kinds import Ask, JobLink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

CATALOG: Final = "cynosure"
"""Name of our catalog in the session of a job."""


class CatalogReach(Struct, frozen=True):
    """How Iceberg's clients reach the catalog, as the service's own principal."""

    url: str
    """Of the server, without a path."""
    warehouse: str
    client_id: str
    client_secret: str
    scope: str
    realm: str
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return f"CatalogReach({self.url!r}, {self.warehouse!r}, ***)"

    @property
    def uri(self) -> str:
        """Where the Iceberg REST protocol is spoken."""
        return f"{self.url.rstrip('/')}/api/catalog"

    def to_properties(self) -> dict[str, str]:
        """Of an Iceberg REST client, which gets tokens and credentials by itself, and renews them."""
        return {
            "type": "rest",
            "uri": self.uri,
            "warehouse": self.warehouse,
            "credential": f"{self.client_id}:{self.client_secret}",
            "scope": self.scope,
            "oauth2-server-uri": f"{self.uri}/v1/oauth/tokens",
            "header.Polaris-Realm": self.realm,
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
            # Every statement meets the catalog.
            "cache-enabled": "false",
        }


class DriverLink(JobLink):
    """One run of a job, for the worker that has its task."""

    def __init__(self, spark: "SparkSession", task_id: str, ask: Ask, *, is_classic: bool = True) -> None:
        super().__init__(spark, task_id, ask, is_classic=is_classic)
        self._has_catalog = False

    def lease(self, needs_s: float = 5.0) -> int:
        """`LeaseLost` unless the task is ours for so long yet; when that ends unless it is kept, in µs.

        Asked before all that changes something. Executors are told the end, and stop before it.
        """
        if self.is_cancelled:
            raise LeaseLost("The task was taken back")
        return msgspec.convert(self._ask("lease", needs_s), int)

    def credentials(self) -> ClientFiles:
        """Credentials for the files, good for a while yet."""
        return self._get("credentials", ClientFiles)

    def progress(self, progress: TaskProgress) -> None:
        """Say how far it is."""
        self._ask("progress", msgspec.to_builtins(progress))

    def receipts(self, receipts: Sequence[Receipt]) -> None:
        """Keep receipts; `LeaseLost` when the task is not ours any more."""
        self._ask("receipts", msgspec.to_builtins(list(receipts)))

    def catalog(self) -> CatalogReach:
        """How Iceberg's own clients reach the catalog."""
        return self._get("catalog", CatalogReach)

    def now_us(self) -> int:
        """The worker's clock."""
        return self._get("now", int)

    def open_catalog(self) -> str:
        """Make our catalog known to the session; its name there."""
        prefix = f"spark.sql.catalog.{CATALOG}"
        for name, value in self.catalog().to_properties().items():
            self.spark.conf.set(f"{prefix}.{name}", value)
        self.spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        self._has_catalog = True
        return CATALOG

    def close(self) -> None:
        """The job is over: give back what its session holds."""
        if not self.is_classic:
            self.spark.stop()
        elif self._has_catalog:
            # Else it would go on renewing its token, in a thread of its own, for as long as Java runs.
            state = self.spark._jsparkSession.sessionState()
            state.catalogManager().catalog(CATALOG).icebergCatalog().close()

    def _get(self, what: str, kind: type[T]) -> T:
        return msgspec.convert(self._ask(what, None), kind)
