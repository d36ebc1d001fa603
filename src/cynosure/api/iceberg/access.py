"""How a client reaches a table's files, as the protocol says it: `config`, `storage-credentials`, signing.

Must not break: an answer with credentials has an ETag of its own, so that a client which still has the table
but not these credentials is not told that nothing has changed.
"""

import hashlib
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from cynosure.catalog.file_access.giving import Access
from cynosure.catalog.managed.answer import NO_CONFIG
from cynosure.catalog.names import SEPARATOR, Identifier
from cynosure.storage.access.ports import Vended

_MOST_KEPT: Final = 4_096
_encode = msgspec.json.Encoder().encode

REFRESH_KEYS: Final = {
    "s3.access-key-id": "client.refresh-credentials-endpoint",
    "gcs.oauth2.token": "gcs.oauth2.refresh-credentials-endpoint",
    "adls.account-name": "adls.refresh-credentials-endpoint",
}
"""What a client is told the path to newer credentials by, by a property that its credentials have."""


class Told(NamedTuple):
    """Members of an answer about the storage."""

    json: bytes
    tag: bytes = b""
    """What the ETag of the answer says about them."""


_NOTHING: Final = Told(NO_CONFIG)


class AccessAnswers:
    """Encodes access, and keeps what it encoded for as long as the same credentials are given again."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[Vended, str, Told]] = {}
        """By the place of the credentials in memory, which holding them keeps from being given again."""

    def tell(self, access: Access, prefix: str, table: Identifier) -> Told:
        """What a client is told with a table."""
        if access.vended is not None:
            return self._tell_vended(access, access.vended, prefix, table)
        if access.is_signed:
            config = {**access.config, **signing_config(table_path(prefix, table))}
            return Told(b'"config":%b' % _encode(config), b"-signed")
        return Told(b'"config":%b' % _encode(access.config)) if access.config else _NOTHING

    def _tell_vended(self, access: Access, vended: Vended, prefix: str, table: Identifier) -> Told:
        known = self._told.get(id(vended))
        # Credentials are of one table by name; only the catalog may be called otherwise by now.
        if known is not None and known[1] == prefix:
            return known[2]
        config = dict(access.config)
        refresh = f"{table_path(prefix, table)}/credentials"
        for credential in vended.credentials[:1]:
            # Here as well: clients older than `storage-credentials` look nowhere else.
            config.update(credential.config)
            config.update({key: refresh for own, key in REFRESH_KEYS.items() if own in credential.config})
        json = b'"config":%b,"storage-credentials":%b' % (_encode(config), _encode(vended.credentials))
        # Not by when they expire: others may do so in the same second, with more rights or less.
        told = Told(json, b"-%b" % hashlib.blake2b(json, digest_size=8).hexdigest().encode())
        if len(self._told) >= _MOST_KEPT:
            self._told.clear()
        self._told[id(vended)] = (vended, prefix, told)
        return told


def encode_credentials(vended: Vended | None) -> bytes:
    """The body of LoadCredentialsResponse."""
    return b'{"storage-credentials":%b}' % _encode(() if vended is None else vended.credentials)


def table_path(prefix: str, table: Identifier) -> str:
    """The path of a table, relative to the address that clients were given."""
    namespace = quote(SEPARATOR.join(table.namespace), safe="")
    return f"v1/{quote(prefix, safe='')}/namespaces/{namespace}/tables/{quote(table.name, safe='')}"


def signing_config(path: str) -> dict[str, str]:
    """What a client is told whose requests are signed below this path."""
    # Relative to the address that the client was given: the only one that surely reaches us from there.
    return {
        "s3.remote-signing-enabled": "true",
        "s3.signer": "S3V4RestSigner",
        # The one of PyIceberg's that knows the signer; its default would send requests unsigned.
        "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",
        "s3.signer.endpoint": f"{path}/sign",
        "signer.endpoint": f"{path}/sign",
    }
