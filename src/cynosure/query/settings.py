"""Settings of governed SQL: the gateway, how statements run, Spark.

Names and defaults of the design document (`memory_limit`, `spill_to_disk`, heartbeat, refresh) are kept; see
docs/concepts/governed-sql.md for the table.
"""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cynosure.common.delegated.settings import ClientTlsSettings
from cynosure.common.secrets import Secret
from cynosure.common.settings import ByteSize, Duration


class GatewaySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The process that answers SQL (`cynosure serve gateway`)."""

    enabled: Literal["auto", "off"] = "auto"
    """Whether `cynosure up` starts one. `auto`: if the packages of the extra `query` are here."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8184
    """Port to listen on; 0 picks a free one."""
    certificate: Path | None = None
    """PEM file with the gateway's certificate chain. Left out: plain HTTP, on loopback only."""
    key: Path | None = None
    """PEM file with the private key of the certificate."""
    catalog_url: str = "http://127.0.0.1:8181"
    """Where the catalog is."""
    catalog_tls: ClientTlsSettings = ClientTlsSettings()
    """See below."""
    client_id: str | None = None
    """Client id of the gateway's own principal, a trusted service."""
    client_secret: Secret | None = None
    """Its secret."""
    credentials_file: Path | None = None
    """File with both, as `cynosure gateway init` writes it; in place of them."""
    file_locations: tuple[str, ...] = ()
    """Local directories (`file:` locations) below which tables may be read. For catalogs on local files."""
    drain: Duration = timedelta(seconds=10)
    """How long statements may go on after the gateway was told to stop; then they are ended."""


class BrokerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Streams to scans on Spark's executors."""

    host: str = "127.0.0.1"
    """Address to listen on; executors must reach it."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """Port to listen on; 0 picks a free one."""
    advertised_host: str | None = None
    """What executors call this machine. Left out: `host`."""
    heartbeat: Duration = timedelta(seconds=5)
    """Between two beats of a scan."""
    missed_heartbeats: Annotated[int, Meta(ge=1)] = 3
    """A worker that missed so many is unhealthy; one beat makes it healthy again."""
    stuck_after: Duration = timedelta(minutes=2)
    """A scan that beats and does not move for so long is ended, and tried elsewhere."""
    credential_check: Duration = timedelta(seconds=60)
    """How often credentials of running scans are looked at."""
    credential_refresh: Duration = timedelta(minutes=5)
    """Those with less left are renewed."""


class QuerySparkSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Spark, for statements that are large or outside of what the local engine is known to do alike."""

    enabled: Literal["auto", "on", "off"] = "auto"
    """`auto`: if PySpark and Java are here."""
    scan: Literal["isolated", "native"] = "isolated"
    """`isolated`: executors get scan tasks and scoped credentials by the broker. `native`: Iceberg's own
    reader below a barrier; less CPU, but the table's credentials are in executors' memory."""
    master: str = "local[*]"
    """Spark's master; `local[*]`, `spark://HOST:PORT` …"""
    driver_memory: ByteSize = 4 * 2**30
    """Heap of the driver, at most. An eighth of it is for the rows of one partition of a result."""
    idle_timeout: Duration = timedelta(minutes=10)
    """A driver that nobody used for so long is ended."""
    jars: Path | None = None
    """Folder with Iceberg's jars, for machines without a network. Needed by the native leaf only."""
    worker_wait: Duration = timedelta(minutes=1)
    """How long a statement on a cluster waits for an executor when there is none, and then fails. Longer than
    the cluster takes to start one."""
    config: dict[str, str] = {}
    """Further settings of Spark, as Spark names them. Those that protect rows and secrets are not changed by
    it."""
    fragment_retries: Annotated[int, Meta(ge=0, le=10)] = 2
    """How often a failed fragment is tried again, elsewhere where there is one."""
    split_size: ByteSize = 128 * 2**20
    """Bytes of one fragment that are aimed for."""


class LocalSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The engine in the gateway's own process."""

    memory_limit: ByteSize = 2 * 2**30
    """Of all local statements together; beyond it they spill, if they may, or fail."""
    threads: Annotated[int, Meta(ge=0)] = 0
    """0: one per core."""


class QuerySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Governed SQL."""

    local_execution: Literal["on", "off"] = "on"
    """`off`: the gateway has no reader at all; every scan runs on Spark."""
    distribute_above: ByteSize = 256 * 2**20
    """Statements that scan less run locally."""
    fall_back_below: ByteSize = 4 * 2**30
    """A statement that Spark failed to begin, through no fault of its own, runs locally if it scans less.
    0: never."""
    skip_below_filters: bool = True
    """Whether conditions of a statement decide what is read of a table under a row filter. It is faster, and
    time tells bounds of hidden values (docs/concepts/governed-sql.md). Off: the row filter alone decides."""
    timeout: Duration = timedelta(minutes=30)
    """How long a statement may take, unless it asks for less."""
    idle_timeout: Duration = timedelta(minutes=5)
    """A statement whose results nobody fetched for so long is ended."""
    concurrent: Annotated[int, Meta(ge=1)] = 16
    """Statements that run at once; others wait."""
    queued: Annotated[int, Meta(ge=0)] = 200
    """Statements that wait at most; others are refused (429)."""
    max_sql_bytes: ByteSize = 2**20
    """The longest statement."""
    page_rows: Annotated[int, Meta(ge=1)] = 10_000
    """Rows of a page of results at most."""
    memory_limit: ByteSize = 8 * 2**30
    """Of all scans in one process: a worker of Spark's, or the gateway."""
    spill_to_disk: bool = True
    """Whether engines may write what does not fit into memory to `spill_dir`."""
    spill_dir: Path | None = None
    """Left out: a directory in the data directory."""
    provision: Path | None = None
    """A file. The catalog makes a trusted principal for the gateway at its start, and writes its credentials
    there. `cynosure up` sets this; where the gateway is another's, use `cynosure gateway init`."""
    gateway: GatewaySettings = GatewaySettings()
    """See below."""
    broker: BrokerSettings = BrokerSettings()
    """See below."""
    local: LocalSettings = LocalSettings()
    """See below."""
    spark: QuerySparkSettings = QuerySparkSettings()
    """See below."""
