"""The certificate of a broker, from an authority that lives as long as the process.

Executors get the authority's certificate with their work, and trust nothing else. Nobody else needs to know
it, so there is nothing to install and nothing to renew: a gateway that starts again has another one.

A maintainer must not break: the authority's key is dropped when the one certificate is signed, and the
broker's own key is never on a disk in the clear.
"""

import secrets
import ssl
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from msgspec import Struct

from cynosure.common.certificates import make_alternative_names, make_name, sign_authority, sign_leaf
from cynosure.common.clock import Clock

_LIFE_DAYS: Final = 3650
"""Longer than a gateway runs. What ends trust is the end of the process, not this."""


class BrokerTls(Struct, frozen=True, eq=False):
    """How the broker proves that it is the broker."""

    context: ssl.SSLContext
    ca_pem: str
    """Public: it says whom to believe, and opens nothing."""


def make_tls(hosts: frozenset[str], clock: Clock) -> BrokerTls:
    """A new authority and a certificate of it for these names and addresses."""
    now = datetime.fromtimestamp(clock.now_us() / 1_000_000, UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = make_name("Cynosure scan authority")
    leaf = sign_leaf(
        make_name("Cynosure scan broker"),
        key.public_key(),
        usage=ExtendedKeyUsageOID.SERVER_AUTH,
        names=make_alternative_names(sorted(hosts)),
        issuer=ca_name,
        issuer_key=ca_key,
        now=now,
        days=_LIFE_DAYS,
    )
    ca = sign_authority(ca_name, ca_key, now, _LIFE_DAYS)
    return BrokerTls(_context(leaf, key), ca.public_bytes(serialization.Encoding.PEM).decode())


def _context(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # One connection per fragment, never resumed: tickets would only be bytes that nobody reads.
    context.num_tickets = 0
    # `ssl` takes keys from files only. The file is encrypted with a password that is never written.
    password = secrets.token_bytes(32).hex().encode()
    pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    with TemporaryDirectory(prefix="cynosure-broker-") as directory:
        file = Path(directory) / "broker.pem"
        file.touch(mode=0o600)
        file.write_bytes(pem)
        context.load_cert_chain(file, password=password)
    return context
