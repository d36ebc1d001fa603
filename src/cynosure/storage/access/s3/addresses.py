"""From a URI to the bucket and key that a store would understand it to mean.

A maintainer must not break: there is one reading. Whatever a store could read in another way than we do is
refused, and what is signed is written anew from what was read, never copied.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from cynosure.common.errors import BadInput
from cynosure.storage.config import S3Storage

_URI: Final = re.compile(r"(https?)://([\w.:\[\]-]+)(/[!-~]*)?", re.ASCII | re.IGNORECASE)
_QUERY: Final = re.compile(r"[!-~]*")
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_UNRESERVED: Final = "-_.~"


class Address(NamedTuple):
    """Where a request goes."""

    scheme: str
    host: str
    """With its port, as the header `Host` has it."""
    bucket: str
    key: str
    """Decoded; empty for the bucket itself."""
    path: str
    """Encoded the one way in which it is signed and sent."""
    query: str
    """As it came, without the question mark."""


class Endpoints:
    """The addresses under which clients know a store."""

    def __init__(self, config: S3Storage) -> None:
        urls = _amazon_urls(config.region) if config.endpoint is None else (config.endpoint,)
        self._known = [_split_host(url) for url in urls]
        self._has_bucket_hosts = config.endpoint is None or not config.path_style_access
        """A store that ignores host names would read `http://a.store/b/c` as `c` in bucket `b`, so buckets
        in host names are understood only where the configuration says that the store does so too."""

    def read(self, uri: str) -> Address:
        """The address that a URI means. `BadInput` when it is another store's, or can be read in two ways."""
        before, _, query = uri.partition("?")
        found = _URI.fullmatch(before)
        if found is None or _QUERY.fullmatch(query) is None or "#" in uri or "\\" in uri:
            raise _refuse("The URI of a request cannot be signed", "Write http(s)://host/path, encoded.")
        scheme, host = _split_host(f"{found[1]}://{found[2]}")
        path = decode_once(found[3] or "/", field="uri")
        for known_scheme, known_host in self._known:
            if scheme != known_scheme:
                continue
            if host == known_host:
                bucket, _, key = path[1:].partition("/")
                return Address(scheme, host, bucket, key, encode_path(path), query)
            if self._has_bucket_hosts and host.endswith(f".{known_host}"):
                bucket = host.removesuffix(f".{known_host}")
                return Address(scheme, host, bucket, path[1:], encode_path(path), query)
        raise _refuse(
            "The request is not for this catalog's storage", "Send it to the endpoint that the table names."
        )


def decode_once(text: str, *, field: str) -> str:
    """Percent sequences as what they stand for. What decodes to no text is refused."""
    if "%" not in text:
        return text
    try:
        if _BROKEN_ESCAPE.search(text) is None:
            return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        pass
    raise BadInput(
        "A percent sequence does not stand for text", field=field, fix="Encode it as UTF-8, byte by byte."
    )


def encode_path(path: str) -> str:
    """A path as it is signed: everything encoded but slashes and what never needs to be."""
    return quote(path, safe="/" + _UNRESERVED)


def _split_host(url: str) -> tuple[str, str]:
    scheme, _, host = url.rstrip("/").lower().partition("://")
    return scheme, host.removesuffix(_DEFAULT_PORTS[scheme])


def _amazon_urls(region: str) -> tuple[str, ...]:
    if region.startswith("cn-"):
        return (f"https://s3.{region}.amazonaws.com.cn",)
    regional = f"https://s3.{region}.amazonaws.com"
    # Java's and Python's clients still use the old name for the oldest region.
    return (regional, "https://s3.amazonaws.com") if region == "us-east-1" else (regional,)


def _refuse(message: str, fix: str) -> BadInput:
    return BadInput(message, field="uri", fix=fix)
