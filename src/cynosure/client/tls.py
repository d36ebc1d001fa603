"""TLS as a client: whom to trust and which certificate to show.

A maintainer must not break: the server's certificate and host name are always verified.
"""

import ssl
from pathlib import Path
from typing import Final

from msgspec import Struct

from cynosure.common.errors import Misconfigured


class ClientTls(Struct, frozen=True):
    """Files of a TLS client."""

    ca: Path | None = None
    """Certificates to trust; the system's own when absent."""
    certificate: Path | None = None
    """Certificate to show to a server that asks for one."""
    key: Path | None = None
    """Key of `certificate`; in the same file when absent."""


NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients that speak plain HTTP: trusts nobody. Theirs would read all of the system's authorities, which
takes longer than everything else that a short call does."""


def make_context(tls: ClientTls) -> ssl.SSLContext:
    """A context that verifies the server, with our certificate if there is one."""
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if tls.certificate is not None:
            context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise Misconfigured(
            "The client's TLS files cannot be used",
            fix="Give PEM files that exist and belong together.",
            ca=str(tls.ca or ""),
            certificate=str(tls.certificate or ""),
            key=str(tls.key or ""),
            reason=str(error),
        ) from error
    return context
