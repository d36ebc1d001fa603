"""Whom Java trusts, and what it shows: the service's TLS files, as Java reads them.

A maintainer must not break: a server's certificate is always verified; a private authority comes beside those
that the machine trusts, because object stores are known by those.
"""

import ssl
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.utils import CryptographyDeprecationWarning

from cynosure.common.delegated.settings import ClientTlsSettings
from cynosure.common.errors import Misconfigured

_PASSWORD: Final = "cynosure"  # noqa: S105 - Java wants one; the folder is what protects the files


def make_trust(tls: ClientTlsSettings, folder: Path) -> tuple[str, ...]:
    """Options for Java, with files in this folder that nobody else can read; none where TLS is not set up."""
    options: list[str] = []
    try:
        if tls.ca is not None:
            _write(folder / "trust.p12", _make_truststore(tls.ca))
            options += _options("trustStore", folder / "trust.p12")
        if tls.certificate is not None:
            _write(folder / "identity.p12", _make_keystore(tls.certificate, tls.key or tls.certificate))
            options += _options("keyStore", folder / "identity.p12")
    except (OSError, ValueError, ssl.SSLError) as error:
        raise Misconfigured(
            "The TLS files of the service cannot be used by Java",
            fix="Give PEM files that exist and belong together (`catalog_tls` in the settings).",
            reason=str(error),
        ) from error
    return tuple(options)


def _options(kind: str, path: Path) -> list[str]:
    return [
        f"-Djavax.net.ssl.{kind}={path}",
        f"-Djavax.net.ssl.{kind}Type=PKCS12",
        f"-Djavax.net.ssl.{kind}Password={_PASSWORD}",
    ]


def _make_truststore(ca: Path) -> bytes:
    own = x509.load_pem_x509_certificates(ca.read_bytes())
    known: list[x509.Certificate] = []
    for each in ssl.create_default_context().get_ca_certs(binary_form=True):
        # Machines trust authorities whose certificates break today's rules. That is theirs to decide.
        with warnings.catch_warnings(), suppress(ValueError):
            warnings.simplefilter("ignore", CryptographyDeprecationWarning)
            known.append(x509.load_der_x509_certificate(each))
    named = [
        PKCS12Certificate(certificate, f"trusted-{at}".encode())
        for at, certificate in enumerate([*own, *known])
    ]
    return serialize_java_truststore(named, BestAvailableEncryption(_PASSWORD.encode()))


def _make_keystore(certificate: Path, key: Path) -> bytes:
    first, *others = x509.load_pem_x509_certificates(certificate.read_bytes())
    private = load_pem_private_key(key.read_bytes(), None)
    return serialize_key_and_certificates(
        b"cynosure",
        private,  # type: ignore[arg-type]  # any kind of key that has certificates
        first,
        others,
        BestAvailableEncryption(_PASSWORD.encode()),
    )


def _write(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
