"""A certificate authority with certificates for a server and its clients, for tests and small installations.

The authority's key lies beside the certificates, unencrypted: whoever reads the directory can issue any
identity. Larger installations bring certificates from an authority of their own.

A maintainer must not break: keys are never readable by others, not even for a moment, and nothing that
exists is overwritten.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import Struct

from cynosure.common.certificates import make_alternative_names, make_name, sign_authority, sign_leaf
from cynosure.common.clock import Clock
from cynosure.common.errors import AlreadyExists, Misconfigured, NotFound

CA_CERTIFICATE: Final = "ca.pem"
SERVER_CERTIFICATE: Final = "server.pem"
SERVER_KEY: Final = "server.key"
CLIENT_CERTIFICATE: Final = "client.pem"
CLIENT_KEY: Final = "client.key"
CATALOG_CERTIFICATE: Final = "catalog.pem"
CATALOG_KEY: Final = "catalog.key"
DELEGATION_CERTIFICATE: Final = "delegation.pem"
DELEGATION_KEY: Final = "delegation.key"
CATALOG_NAME: Final = "cynosure-catalog"
"""Whom the delegation service takes orders from, unless it is told otherwise."""
DELEGATION_NAME: Final = "cynosure-delegation"
_CA_KEY: Final = "ca.key"
_FILES: Final = (
    CA_CERTIFICATE,
    _CA_KEY,
    SERVER_CERTIFICATE,
    SERVER_KEY,
    CLIENT_CERTIFICATE,
    CLIENT_KEY,
    CATALOG_CERTIFICATE,
    CATALOG_KEY,
    DELEGATION_CERTIFICATE,
    DELEGATION_KEY,
)
_CA_DAYS: Final = 3650


class CertificateInfo(Struct, frozen=True):
    """What one certificate file says."""

    file: str
    subject: str
    issuer: str
    names: list[str]
    """Host names and addresses it is valid for."""
    not_before: datetime
    not_after: datetime
    is_expired: bool
    sha256: str


def init_certs(
    directory: Path, *, hosts: Sequence[str], client: str, days: int, clock: Clock
) -> list[CertificateInfo]:
    """Make authority, server and client certificates in `directory`; refuses when any file is there.

    The server's is good for a catalog and for a delegation service. Beside the client there are two more:
    the catalog when it calls the delegation service, and the other way around.
    """
    if existing := [name for name in _FILES if (directory / name).exists()]:
        raise AlreadyExists(
            "The directory already holds certificates, and they are not overwritten",
            fix="Choose another directory with --dir, or remove the old files if nobody uses them.",
            directory=str(directory),
            files=existing,
        )
    now = datetime.fromtimestamp(clock.now_us() / 1_000_000, UTC)
    names = make_alternative_names(hosts)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = make_name("Cynosure CA")
    ca = sign_authority(ca_name, ca_key, now, _CA_DAYS)
    _write(directory / CA_CERTIFICATE, _pem(ca), 0o644)
    _write(directory / _CA_KEY, _key_pem(ca_key), 0o600)
    leaves = (
        (SERVER_CERTIFICATE, SERVER_KEY, hosts[0], names, ExtendedKeyUsageOID.SERVER_AUTH),
        (CLIENT_CERTIFICATE, CLIENT_KEY, client, None, ExtendedKeyUsageOID.CLIENT_AUTH),
        (CATALOG_CERTIFICATE, CATALOG_KEY, CATALOG_NAME, None, ExtendedKeyUsageOID.CLIENT_AUTH),
        (DELEGATION_CERTIFICATE, DELEGATION_KEY, DELEGATION_NAME, None, ExtendedKeyUsageOID.CLIENT_AUTH),
    )
    for certificate_file, key_file, common_name, alternatives, usage in leaves:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = sign_leaf(
            make_name(common_name),
            key.public_key(),
            usage=usage,
            names=alternatives,
            issuer=ca_name,
            issuer_key=ca_key,
            now=now,
            days=days,
        )
        _write(directory / certificate_file, _pem(certificate), 0o644)
        _write(directory / key_file, _key_pem(key), 0o600)
    return show_certs(directory, clock=clock)


def show_certs(path: Path, *, clock: Clock) -> list[CertificateInfo]:
    """What the certificates in a directory, or in one PEM file, say."""
    files = sorted(path.glob("*.pem")) if path.is_dir() else [path]
    if not files or not all(file.exists() for file in files):
        raise NotFound("No certificates there", fix="Make some with `cynosure certs init`.", path=str(path))
    now = datetime.fromtimestamp(clock.now_us() / 1_000_000, UTC)
    return [_describe(file, certificate, now) for file in files for certificate in _read(file)]


def _read(file: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError) as error:
        raise Misconfigured(
            "The file holds no readable certificate",
            fix="Give a file of PEM certificates.",
            path=str(file),
            reason=str(error),
        ) from error


def _describe(file: Path, certificate: x509.Certificate, now: datetime) -> CertificateInfo:
    names: list[str] = []
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            names = [str(name.value) for name in extension.value]
    not_after = certificate.not_valid_after_utc
    return CertificateInfo(
        file=str(file),
        subject=certificate.subject.rfc4514_string(),
        issuer=certificate.issuer.rfc4514_string(),
        names=names,
        not_before=certificate.not_valid_before_utc,
        not_after=not_after,
        is_expired=not_after < now,
        sha256=certificate.fingerprint(hashes.SHA256()).hex(),
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
