"""Parts of X.509 certificates that all of ours have in common.

A maintainer must not break: a key signs certificates or proves an identity, never both.
"""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from cynosure.common.errors import BadInput


def make_name(common_name: str) -> x509.Name:
    """A subject or issuer."""
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError as error:
        raise BadInput(
            "A name cannot stand in a certificate",
            field="name",
            fix="Give a name of 1 to 64 characters.",
            name=common_name,
        ) from error


def make_alternative_names(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    """Host names and addresses that a server may be reached by."""
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            try:
                names.append(x509.DNSName(host))
            except ValueError as error:
                raise BadInput(
                    "A host name cannot stand in a certificate",
                    field="host",
                    fix="Give ASCII names or addresses; international names in their xn-- form.",
                    host=host,
                ) from error
    return x509.SubjectAlternativeName(names)


def sign_authority(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.Certificate:
    """The certificate of an authority, signed by itself."""
    return (
        _begin(name, name, key.public_key(), now, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(is_ca=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def sign_leaf(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    *,
    usage: x509.ObjectIdentifier,
    names: x509.SubjectAlternativeName | None,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: datetime,
    days: int,
) -> x509.Certificate:
    """The certificate of a server or client."""
    builder = (
        _begin(subject, issuer, key, now, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(is_ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # An hour back: the clocks of other machines may be behind.
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )
