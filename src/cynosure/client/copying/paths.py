"""Where the files of a copy are, by where they are in the table that is copied.

A maintainer must not break: two files never get one path, and a path depends on nothing but the three texts,
so a copy that is begun again finds what it wrote before.
"""

import re
from hashlib import sha256
from typing import Final

_ELSEWHERE: Final = "copied"
"""Directory of files that were outside the table's own."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.=-]")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]{0,127}")
_MOST_CHARS: Final = 128


class Paths:
    """From one location to another."""

    def __init__(self, source: str, target: str) -> None:
        self._source = source.rstrip("/") + "/"
        self._target = target.rstrip("/") + "/"

    def rename(self, path: str) -> str:
        """The path of a file in the copy."""
        inside = path.removeprefix(self._source)
        parts = inside.split("/")
        # As it is spelled: engines find deletes by a path's letters, so another spelling is another file.
        # A source that is itself a copy has a directory of that name, too: its files make room for others.
        if inside != path and parts[0] != _ELSEWHERE and not {"", ".", ".."}.intersection(parts):
            return self._target + inside
        directory, _, last = path.rpartition("/")
        if _PLAIN.fullmatch(last):
            return f"{self._target}{_ELSEWHERE}/{_digest('directory', directory)}/{last}"
        # Of two names that are alike when they are spelled harmlessly, both are kept.
        harmless = _UNSAFE.sub("_", last)[-_MOST_CHARS:].strip(".") or "file"
        return f"{self._target}{_ELSEWHERE}/{_digest('file', path)}/{harmless}"


def _digest(kind: str, text: str) -> str:
    return sha256(f"{kind} {text}".encode()).hexdigest()[:32]
