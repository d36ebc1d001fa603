"""TLS of the server: its files, their renewal, and what a handshake says about the peer.

A maintainer must not break: with a client CA, no request without a certificate from that CA reaches the
application, also after the files were renewed; and a renewal that cannot be read changes nothing.
"""

import ssl
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from cynosure.common.clock import Clock
from cynosure.common.errors import Misconfigured
from cynosure.common.telemetry.logs import ERROR, Log
from cynosure.server.settings import TlsSettings

_log = Log(__name__)
_TLS_VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}


class ServerTls:
    """The TLS context of a listener. New connections use the files as they were last read."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._current = _read_context(settings)
        self._versions = self._read_versions()
        # The listener keeps one context for life; each handshake is moved to the current one.
        self.context = _read_context(settings)
        self.context.sni_callback = self._use_current

    def reload(self) -> None:
        """Read the files again. Keeps the old ones, and says so in the log, when they cannot be used."""
        self._versions = self._read_versions()
        try:
            self._current = _read_context(self._settings)
        except Misconfigured as error:
            _log.event("tls.renewal_refused", level=ERROR, error=error)
        else:
            _log.event("tls.renewed")

    async def watch(self, clock: Clock, *, every_s: float = 10.0) -> None:
        """Reload whenever a file changes, until cancelled."""
        while True:
            await clock.sleep(every_s)
            if self._read_versions() != self._versions:
                self.reload()

    def _use_current(self, connection: ssl.SSLObject, name: str | None, initial: ssl.SSLContext) -> None:
        connection.context = self._current

    def _read_versions(self) -> list[tuple[int, int] | None]:
        return [_version(path) for path in _files(self._settings)]


class PeerTls(Mapping[str, Any]):
    """ASGI's `tls` extension for one connection; what costs time is computed when asked for."""

    def __init__(self, connection: ssl.SSLObject) -> None:
        self._der = connection.getpeercert(binary_form=True)
        self._version = _TLS_VERSIONS.get(connection.version() or "")

    @cached_property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "server_cert": None,
            "client_cert_chain": [],
            "client_cert_name": None,
            "client_cert_error": None,
            "tls_version": self._version,
            "cipher_suite": None,
        }
        if self._der:
            from cryptography import x509  # noqa: PLC0415 - only connections with a client certificate pay

            values["client_cert_chain"] = [ssl.DER_cert_to_PEM_cert(self._der)]
            values["client_cert_name"] = x509.load_der_x509_certificate(self._der).subject.rfc4514_string()
        return values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _files(settings: TlsSettings) -> list[Path]:
    return [path for path in (settings.certificate, settings.key, settings.client_ca) if path is not None]


def _version(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def _read_context(settings: TlsSettings) -> ssl.SSLContext:
    if settings.certificate is None:
        raise Misconfigured("TLS needs a certificate", fix="Set server.tls.certificate and server.tls.key.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without resumption every connection proves its certificate against the files of today.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_cert_chain(settings.certificate, settings.key)
        if settings.client_ca is not None:
            context.load_verify_locations(settings.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ssl.SSLError) as error:
        raise Misconfigured(
            "The server's TLS files cannot be used",
            fix="Give readable PEM files that belong together; `cynosure certs init` makes some.",
            certificate=str(settings.certificate),
            key=str(settings.key),
            client_ca=str(settings.client_ca or ""),
            reason=error.strerror or str(error),
        ) from error
    return context
