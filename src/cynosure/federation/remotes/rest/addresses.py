"""Paths below the URL of a remote.

A maintainer must not break: every path stays below the URL of the connection, whatever a name or a prefix
that the remote gave looks like.
"""

import re
from functools import lru_cache
from typing import Final
from urllib.parse import quote, unquote

import httpx

from cynosure.catalog.names import Namespace

UNIT_SEPARATOR: Final = "\x1f"
_MOST_PREFIX_CHARS: Final = 1_024
_PREFIX: Final = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@|/%]+")


def is_prefix(text: str) -> bool:
    """Whether a prefix that a remote gave can be a part of paths."""
    if len(text) > _MOST_PREFIX_CHARS or not _PREFIX.fullmatch(text):
        return False
    return all(unquote(part) not in ("", ".", "..") for part in text.split("/"))


def is_separator(text: str) -> bool:
    """Whether the levels of a namespace can be joined by this, once it is decoded."""
    return 0 < len(text) <= 8 and "/" not in text


def is_joinable(namespace: Namespace, separator: str) -> bool:
    """Whether a namespace can be told from all others by its text: `a.b` of one level is read as two."""
    return not any(separator in level for level in namespace)


def below(base: httpx.URL, *parts: str, query: str = "") -> httpx.URL:
    """A URL below another; `parts` and `query` are percent-encoded already."""
    path = "/".join((base.raw_path.decode("ascii").rstrip("/"), *parts))
    return _with_path(base, f"{path}?{query}" if query else path)


@lru_cache(maxsize=1_024)
def _with_path(base: httpx.URL, path: str) -> httpx.URL:
    # Remembered: httpx takes a tenth of the whole request to check a URL, and the same tables are asked for.
    return base.copy_with(raw_path=path.encode("ascii"))


def encode_name(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def encode_namespace(namespace: Namespace, separator: str) -> str:
    """A namespace as one segment of a path."""
    return quote(separator.join(namespace), safe="")
