"""Secrets that tests made, and the search for them in everything that was written.

    known = KnownSecrets()
    known.add(secret)
    for leak in known.search(directory): ...

A maintainer must not break: whoever makes a secret for a server in a test adds it to `KNOWN` before it is
used; files are searched as bytes, whatever they are called and however they are encoded inside.
"""

import base64
import fnmatch
import json
import mmap
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_TOKEN = re.compile(rb"eyJ[\w-]{16,}\.eyJ[\w-]{16,}\.[\w-]{86,}")
"""A signed token, ours or another issuer's."""
_WORD = re.compile(rb"[A-Za-z0-9+/]{24,}")
"""Whatever could contain a secret, or one in base64."""
_SHORTEST = 24
CREDENTIALS_FILES = "root-credentials*.json"
"""Where a server writes the credentials that it made; the one file they belong into."""
MADE_BY_SERVER = "a secret that a server made"


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret where none may be."""

    where: str
    what: str
    """Which kind; never the secret itself."""
    offset: int


@dataclass
class KnownSecrets:
    """Secrets that must not be found anywhere."""

    _words: dict[bytes, str] = field(default_factory=dict)
    _by_start: dict[bytes, set[bytes]] = field(default_factory=dict)
    """By their first bytes: there are hundreds of secrets, of many lengths, and gigabytes to search."""

    def add(self, secret: str, *, client_id: str = "", kind: str = "a client secret") -> str:
        """Remember a secret, also as HTTP's Basic scheme would send it; returns it."""
        if len(secret) < _SHORTEST or not _WORD.fullmatch(secret.encode()):
            raise ValueError(f"Only secrets of at least {_SHORTEST} letters and digits can be searched for")
        self._remember(secret.encode(), kind)
        if client_id:
            basic = base64.b64encode(f"{client_id}:{secret}".encode()).rstrip(b"=")
            self._remember(basic, f"{kind} in base64")
        return secret

    def _remember(self, word: bytes, kind: str) -> None:
        self._words[word] = kind
        self._by_start.setdefault(word[:_SHORTEST], set()).add(word)

    def add_credentials_files(self, directory: Path) -> None:
        """Remember what servers below a directory made for themselves."""
        for folder, names in _walk(directory):
            for name in fnmatch.filter(names, CREDENTIALS_FILES):
                for secret in _strings(json.loads((folder / name).read_bytes())):
                    if len(secret) >= _SHORTEST and _WORD.fullmatch(secret.encode()):
                        self.add(secret, kind=MADE_BY_SERVER)

    def search_bytes(self, data: "bytes | mmap.mmap", where: str) -> Iterator[Leak]:
        """Every known secret, and every token, in something that was written."""
        by_start = self._by_start
        for found in _WORD.finditer(data):
            word = found[0]
            # What stands before and after a secret may look like a part of it.
            for start in range(len(word) - _SHORTEST + 1):
                for secret in by_start.get(word[start : start + _SHORTEST], ()):
                    if word.startswith(secret, start):
                        yield Leak(where, self._words[secret], found.start() + start)
        for found in _TOKEN.finditer(data):
            yield Leak(where, "a signed token", found.start())

    def search(self, directory: Path, allowed: Iterable[str] = (CREDENTIALS_FILES,)) -> Iterator[Leak]:
        """Search all files below a directory but those whose name matches one of `allowed`."""
        allowed = tuple(allowed)
        for folder, names in _walk(directory):
            for name in names:
                path = folder / name
                if not any(path.match(pattern) for pattern in allowed):
                    yield from self._search_file(path)

    def _search_file(self, path: Path) -> Iterator[Leak]:
        try:
            with path.open("rb") as file:
                if not file.seek(0, 2):
                    return
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    yield from self.search_bytes(data, str(path))
        except (OSError, ValueError):
            # A socket, a file that is gone or shrinks: nothing that stays.
            return


KNOWN = KnownSecrets()
"""Those of this process."""


def _walk(directory: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders and the files in them. What disappears meanwhile is passed over."""
    for folder, _, names in os.walk(directory):
        yield Path(folder), [name for name in names if (Path(folder) / name).is_file()]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
