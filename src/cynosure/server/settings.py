"""All settings of a server, composed from the rooms' structs, read once and checked.

The only place that reads the environment, but for the credentials of first roots (`access.py`), which must
not be shown with settings. A room gets its own struct in a constructor and never looks further.

A maintainer must not break: this imports nothing heavy, because every command on a data directory reads
settings.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from cynosure.auth.settings import AuthSettings, check_audit
from cynosure.catalog.settings import CatalogSettings
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import Misconfigured
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.common.secrets import Secret
from cynosure.common.settings import (
    Aliases,
    ByteSize,
    Duration,
    read_environment,
    read_file,
    read_overrides,
    read_settings,
)
from cynosure.common.telemetry.settings import TelemetrySettings
from cynosure.federation.settings import FederationSettings
from cynosure.idempotency.settings import IdempotencySettings, check_idempotency_settings
from cynosure.persistence.settings import PersistenceSettings, check_lifetimes
from cynosure.query.settings import QuerySettings
from cynosure.server.delegation_settings import check_delegation
from cynosure.server.gateway_settings import check_query
from cynosure.storage.settings import StorageSettings, check_storage_settings

DEFAULT_FILE = Path("cynosure.toml")
FILE_VARIABLE = "CYNOSURE_CONFIG"

ALIASES: Aliases = MappingProxyType(
    {
        "polaris.idempotency.lifetime": "idempotency.lifetime",
        "polaris.idempotency.enabled": "idempotency.enabled",
        "polaris.idempotency.cleanup.enabled": "idempotency.cleanup.enabled",
        "polaris.delegation-service.task-type": "delegation.task_type",
        "polaris.delegation-service.endpoint": "delegation.endpoint",
        "delegation.task-type": "delegation.task_type",
        "delegation.sync-timeout": "delegation.sync_timeout",
        "delegation.task.lease.lost-timeout-duration": "delegation.task.lease.lost_timeout",
        **{
            f"delegation.retry.{kind}.{theirs}": f"delegation.retry.{kind.lower()}.{ours}"
            for kind in ("default", *TaskType)
            for theirs, ours in (
                ("max-attempts", "max_attempts"),
                ("initial-backoff-duration", "initial_backoff"),
                ("backoff-multiplier", "backoff_multiplier"),
                ("max-backoff-duration", "max_backoff"),
            )
        },
    }
)
"""Names that operators may know from Apache Polaris and its proposals. A new room gives its names their
target here."""


class TlsSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """HTTPS, and client certificates."""

    certificate: Path | None = None
    """PEM file with the server's certificate chain. Left out: plain HTTP."""
    key: Path | None = None
    """PEM file with the private key of the certificate."""
    client_ca: Path | None = None
    """PEM file with the authorities whose client certificates are accepted. Left out: none are asked for."""


class ServerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The server process: where it listens and where it keeps its files."""

    data_dir: Path = Path("data")
    """Directory for the embedded store, keys, metrics and the operator socket; relative to the working
    directory. Made with mode 0700 when missing."""
    host: str = "127.0.0.1"
    """Address to listen on. Beyond this machine use TLS, here (`server.tls`) or in a proxy in front."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8181
    """Port to listen on; 0 picks a free one."""
    workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """Worker processes that share the port."""
    operator_socket: Path = Path("operator.sock")
    """Unix socket (mode 0600) through which operators' commands reach the running server; relative to the
    data directory."""
    max_body_bytes: ByteSize = 10 * 2**20
    """Largest body of one request."""
    body_timeout: Duration = timedelta(seconds=30)
    """How long a client may take to send the body of a request."""
    request_timeout: Duration = timedelta(seconds=90)
    """After this nobody waits for an answer any more: operations begin nothing new for the request."""
    shutdown_grace: Duration = timedelta(seconds=30)
    """How long requests that are being worked on may go on after the server was told to stop."""
    access_log: Literal["all", "notable", "none"] = "notable"
    """Which requests are logged. `notable`: those that change something, fail or take a second."""
    tls: TlsSettings = TlsSettings()
    """See below."""

    @property
    def operator_socket_path(self) -> Path:
        """Where the operator socket is."""
        return self.data_dir / self.operator_socket

    @property
    def metrics_dir(self) -> Path:
        """Where several worker processes keep their metrics. Emptied at each start."""
        return self.data_dir / "metrics"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set, by room."""

    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    catalog: CatalogSettings = CatalogSettings()
    delegation: DelegationSettings = DelegationSettings()
    federation: FederationSettings = FederationSettings()
    idempotency: IdempotencySettings = IdempotencySettings()
    persistence: PersistenceSettings = PersistenceSettings()
    query: QuerySettings = QuerySettings()
    storage: StorageSettings = StorageSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    keyring: KeyringSettings = KeyringSettings()

    @property
    def store_url(self) -> Secret:
        """The URL of the store, the embedded one when none is set."""
        return self.persistence.url or Secret(f"sqlite:{self.server.data_dir / 'store.db'}")

    @property
    def task_store_url(self) -> Secret:
        """The URL of the delegation service's own store, an embedded one when none is set."""
        return self.delegation.service.store or Secret(f"sqlite:{self.server.data_dir / 'delegation.db'}")


def load_settings(
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Read file, environment and flags, each stronger than the one before, and check them together.

    `file` left out: what `CYNOSURE_CONFIG` names, else `cynosure.toml` in the working directory if it
    is there. `overrides` are flags by dotted name; `None` stands for a flag that was not given.
    """
    environment = os.environ if environment is None else environment
    sources = [
        read_environment(environment, frozenset(Settings.__struct_fields__)),
        read_overrides(overrides or {}),
    ]
    if (path := _find_file(file, environment)) is not None:
        sources.insert(0, read_file(path))
    settings = read_settings(Settings, sources, ALIASES)
    check_settings(settings)
    return settings


class SettingsSource(Struct, frozen=True):
    """Where settings come from besides the environment; enough to read the same ones in a child."""

    file: str | None = None
    overrides: dict[str, Any] = {}
    """Flags by dotted name, as plain JSON values."""

    def load(self) -> Settings:
        """Read the settings."""
        return load_settings(file=Path(self.file) if self.file else None, overrides=self.overrides)


def check_settings(settings: Settings) -> None:
    """Refuse settings that are fine one by one and wrong together."""
    check_lifetimes(settings.persistence, settings.idempotency.kept)
    check_idempotency_settings(
        settings.idempotency,
        request_timeout=settings.server.request_timeout,
        grace=settings.persistence.gc.grace,
    )
    check_audit(settings.auth.audit, settings.persistence.gc.history_retention)
    check_storage_settings(settings.storage)
    if settings.catalog.staging_lifetime <= settings.storage.credential_lifetime:
        raise Misconfigured(
            "Places of staged tables would be free while somebody still has credentials for them",
            key="catalog.staging_lifetime",
            fix="Make catalog.staging_lifetime longer than storage.credential_lifetime.",
        )
    check_delegation(settings.delegation, request_timeout=settings.server.request_timeout)
    check_query(settings.query)
    tls = settings.server.tls
    if (tls.certificate is None) != (tls.key is None):
        raise Misconfigured(
            "TLS needs both a certificate and its key",
            has_certificate=tls.certificate is not None,
            has_key=tls.key is not None,
            fix="Set both server.tls.certificate and server.tls.key, or neither.",
        )
    if tls.client_ca is not None and tls.certificate is None:
        raise Misconfigured(
            "Client certificates need TLS",
            fix="Set server.tls.certificate and server.tls.key, or remove server.tls.client_ca.",
        )


def _find_file(file: Path | None, environment: Mapping[str, str]) -> Path | None:
    if file is not None:
        return file
    if named := environment.get(FILE_VARIABLE):
        return Path(named)
    return DEFAULT_FILE if DEFAULT_FILE.exists() else None
