"""Where catalogs may keep files of this machine, and where they do when nobody says otherwise.

A maintainer must not break: local files only below the roots of this server (its own warehouse, and what the
settings allow), with links resolved, so that one place has one name and nobody who may create catalogs
reaches other files.
"""

import hashlib
import re
from contextlib import suppress
from pathlib import Path

from cynosure.common.errors import BadInput
from cynosure.server.settings import Settings
from cynosure.storage.location import Location
from cynosure.storage.resolve import resolve_path

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_MAX_DIRECTORY_CHARS = 100


def file_roots(settings: Settings) -> list[Location]:
    """The directories below which catalogs may keep files of this machine."""
    roots = [resolve_path(path, field="storage.file_roots") for path in settings.storage.file_roots.values()]
    with suppress(BadInput):
        # A data directory whose name no location can have serves all the same, without files of its own.
        roots.insert(0, resolve_path(warehouse_of(settings), field="server.data_dir"))
    return roots


def warehouse_of(settings: Settings) -> Path:
    """Where the files of catalogs are that were given no location."""
    return settings.server.data_dir / "warehouse"


def default_location(settings: Settings, name: str) -> str:
    """Where a catalog of this name keeps its files when nobody says otherwise."""
    return resolve_path(warehouse_of(settings) / directory_name(name), field="name").text


def directory_name(name: str) -> str:
    """A directory for a catalog of this name; two names never share one."""
    plain = _UNSAFE.sub("_", name)[:_MAX_DIRECTORY_CHARS]
    if plain == name and not name.startswith("."):
        return name
    return f"{plain.lstrip('.')}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
