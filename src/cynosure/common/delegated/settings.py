"""Settings of delegated work: what a catalog server does with it, and the service itself.

The names of the proposal (`polaris.delegation-service.*`, `delegation.retry.TABLE_PURGE.max-attempts` …) are
aliases: `cynosure.server.settings`.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.secrets import Secret
from cynosure.common.settings import ByteSize, Duration

PurgeMode = Literal["sync", "async", "fire-and-forget"]
"""`sync`: answered when the last file is gone. `async`: when the task is accepted. `fire-and-forget`: when
the table is dropped; the task follows."""


class ClientTlsSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """TLS files of one side when it calls the other."""

    ca: Path | None = None
    """PEM file with the authorities to trust. Left out: those of the system."""
    certificate: Path | None = None
    """PEM file with the certificate to show."""
    key: Path | None = None
    """PEM file with the private key of the certificate."""


class LeaseSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How long a worker has a task."""

    lost_timeout: Duration = timedelta(hours=1)
    """A task whose worker has said nothing for so long is given to another one."""


class TaskSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks in general."""

    lease: LeaseSettings = LeaseSettings()
    """See below."""


class DefaultRetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How often and when any task is tried again after a passing trouble."""

    max_attempts: Annotated[int, Meta(ge=1)] = 5
    """Attempts, with the first one."""
    initial_backoff: Duration = timedelta(seconds=30)
    """Pause after the first attempt."""
    backoff_multiplier: Annotated[float, Meta(ge=1.0, le=100.0)] = 2.0
    """Each pause is so many times the one before."""
    max_backoff: Duration = timedelta(hours=1)
    """Longest pause."""


class PurgeRetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How often and when a purge is tried again. What is left out is as for all tasks."""

    max_attempts: Annotated[int, Meta(ge=1)] | None = 10
    """Attempts, with the first one."""
    initial_backoff: Duration | None = timedelta(minutes=1)
    """Pause after the first attempt."""
    backoff_multiplier: Annotated[float, Meta(ge=1.0, le=100.0)] | None = None
    """Each pause is so many times the one before."""
    max_backoff: Duration | None = None
    """Longest pause."""


class RetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How often and when tasks of this kind are tried again. What is left out is as for all tasks."""

    max_attempts: Annotated[int, Meta(ge=1)] | None = None
    """Attempts, with the first one."""
    initial_backoff: Duration | None = None
    """Pause after the first attempt."""
    backoff_multiplier: Annotated[float, Meta(ge=1.0, le=100.0)] | None = None
    """Each pause is so many times the one before."""
    max_backoff: Duration | None = None
    """Longest pause."""


class RetriesSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How often and when tasks are tried again: for all kinds, and for each."""

    default: DefaultRetrySettings = DefaultRetrySettings()
    """See below."""
    table_purge: PurgeRetrySettings = PurgeRetrySettings()
    """See below."""
    snapshot_expiry: RetrySettings = RetrySettings()
    """See below."""
    data_compaction: RetrySettings = RetrySettings()
    """See below."""
    orphan_file_removal: RetrySettings = RetrySettings()
    """See below."""
    metadata_compaction: RetrySettings = RetrySettings()
    """See below."""
    format_conversion: RetrySettings = RetrySettings()
    """See below."""

    def of(self, task_type: TaskType) -> "RetryPolicy":
        """What holds for one kind."""
        own: RetrySettings | PurgeRetrySettings = getattr(self, task_type.lower())
        base = self.default
        return RetryPolicy(
            own.max_attempts or base.max_attempts,
            own.initial_backoff or base.initial_backoff,
            own.backoff_multiplier or base.backoff_multiplier,
            own.max_backoff or base.max_backoff,
        )


class RetryPolicy(Struct, frozen=True):
    """How often and when a task of one kind is tried again."""

    max_attempts: int = 5
    initial_backoff: timedelta = timedelta(seconds=30)
    backoff_multiplier: float = 2.0
    max_backoff: timedelta = timedelta(hours=1)

    def backoff_after(self, attempt: int) -> timedelta | None:
        """How long to wait after this attempt failed (the first is 1); `None`: it was the last."""
        if attempt >= self.max_attempts:
            return None
        # Bounded before it is a float that no clock can take.
        factor = min(self.backoff_multiplier ** min(attempt - 1, 64), 1e9)
        return min(self.initial_backoff * factor, self.max_backoff)


class SparkSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where jobs run that are too large for one process, and all that rewrite data."""

    master: str = "local[*]"
    """Spark's master; `local[*]`, `spark://HOST:PORT` …"""
    remote: str | None = None
    """Address of a Spark Connect server (`sc://HOST:PORT`), in place of a master."""
    driver_memory: ByteSize = 512 * 2**20
    """Heap of the driver."""
    idle_timeout: Duration = timedelta(minutes=10)
    """A session that nobody used for so long is ended."""
    jars: Path | None = None
    """Folder with Iceberg's jars, for machines without a network. Left out: Spark fetches them once."""
    config: dict[str, str] = {}
    """Further settings of Spark, as Spark names them."""


class ServiceSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The delegation service itself (`cynosure serve delegation`)."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8182
    """Port to listen on; 0 picks a free one."""
    store: Secret | None = None
    """URL of the store of tasks. Left out: a file of its own in the data directory."""
    realm: str = "default"
    """The one realm it works for."""
    certificate: Path | None = None
    """PEM file with the service's certificate chain. Left out: plain HTTP, on loopback only."""
    key: Path | None = None
    """PEM file with the private key of the certificate."""
    client_ca: Path | None = None
    """PEM file with the authorities whose clients may connect."""
    client_names: tuple[str, ...] = ("cynosure-catalog",)
    """Common names of the certificates that may give orders: the right authority is not enough."""
    catalog_url: str = "http://127.0.0.1:8181"
    """Where the catalog is."""
    catalog_tls: ClientTlsSettings = ClientTlsSettings()
    """See below."""
    client_id: str | None = None
    """Client id of the service's own principal."""
    client_secret: Secret | None = None
    """Its secret."""
    credentials_file: Path | None = None
    """File with both, as `cynosure delegation init` writes it; in place of them."""
    file_locations: tuple[str, ...] = ()
    """Local directories (`file:` locations) below which it may touch files. For catalogs on local files."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 4
    """Tasks that one instance works on at once."""
    polling: Duration = timedelta(seconds=5)
    """How often a worker without work looks for some."""
    drain: Duration = timedelta(seconds=30)
    """How long tasks may go on after the service was told to stop; then they are given back."""
    spark_threshold_files: Annotated[int, Meta(ge=0)] = 10_000
    """A purge of more files than this runs on Spark; smaller ones in the service itself, without a JVM."""
    callback: bool = False
    """Whether the catalog is told of the end of a task at once. It asks in any case."""
    spark: SparkSettings = SparkSettings()
    """See below."""


class MaintenanceSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Policies that run."""

    enabled: bool = True
    """Whether attached policies (`system.*`) become tasks. Needs a delegation service."""
    interval: Duration = timedelta(minutes=1)
    """How often one of all servers looks what is due."""
    concurrent: Annotated[int, Meta(ge=1)] = 2
    """Tasks of one catalog that may be under way at once."""
    default_schedule: str = "P1D"
    """When a policy runs that does not say so: an ISO 8601 duration or a cron line."""


class DelegationSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Long work: where it is done, and by what rules."""

    task_type: Literal["local", "delegated"] | None = None
    """`local`: purges are done in the catalog's own process, and nothing else is. `delegated`: by a
    delegation service. Left out: `delegated` if there is an endpoint."""
    endpoint: str | None = None
    """Where the delegation service is."""
    tls: ClientTlsSettings = ClientTlsSettings()
    """See below."""
    mode: PurgeMode = "sync"
    """When a request to purge is answered."""
    sync_timeout: Duration = timedelta(minutes=1)
    """How long a request to purge waits, across retries. Then it is answered 504, and the work goes on."""
    provision: Path | None = None
    """A file. The catalog makes a principal for the service at its start, gives it what it needs in catalogs
    that work is ordered for, and writes its credentials there. `cynosure up` sets this; where the service is
    another's, use `cynosure delegation init`."""
    outbox_interval: Duration = timedelta(seconds=30)
    """How often one of all servers looks after purges under way."""
    task: TaskSettings = TaskSettings()
    """See below."""
    retry: RetriesSettings = RetriesSettings()
    """See below."""
    maintenance: MaintenanceSettings = MaintenanceSettings()
    """See below."""
    service: ServiceSettings = ServiceSettings()
    """See below."""

    @property
    def is_delegated(self) -> bool:
        """Whether a delegation service does the work."""
        return self.task_type == "delegated" or (self.task_type is None and self.endpoint is not None)
