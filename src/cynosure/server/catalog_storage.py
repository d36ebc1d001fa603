"""From what an operator wrote to a catalog's storage configuration.

A maintainer must not break: local files only below the roots of this server (its own warehouse, and what the
settings allow), with links resolved, so that one place has one name and nobody who may create catalogs
reaches other files.
"""

import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, structs

from cynosure.catalog.entities import CatalogEntity
from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.server.settings import Settings
from cynosure.storage.config import FileStorage, S3Keys, S3Storage, StorageConfig
from cynosure.storage.location import Location
from cynosure.storage.resolve import resolve_location, resolve_path

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_MAX_DIRECTORY_CHARS = 100


class S3Params(Struct, frozen=True, forbid_unknown_fields=True):
    """How an S3 service is reached; what is left out is Amazon's own, or stays as it is."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None

    def __repr__(self) -> str:
        return "S3Params(***)"


class Chosen(NamedTuple):
    """What an operator's words come to."""

    base: str
    config: StorageConfig
    keys: S3Keys | None


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


def choose_storage(base: str, further: tuple[str, ...], s3: S3Params) -> Chosen:
    """The storage of a new catalog: of the kind that its base location says."""
    location = resolve_location(base)
    allowed = (location.text, *(resolve_location(each).text for each in further))
    if location.scheme == "file":
        _refuse_s3(s3)
        return Chosen(location.text, FileStorage(allowed), None)
    return Chosen(location.text, _apply(S3Storage(allowed_locations=allowed), s3), _keys(s3))


def change_storage(entity: CatalogEntity, base: str, further: tuple[str, ...], s3: S3Params) -> Chosen:
    """The storage of a catalog with these changes. A new base location is allowed by being named."""
    added = [resolve_location(each).text for each in (*further, *([base] if base else []))]
    old = entity.storage
    allowed = (*old.allowed_locations, *(each for each in added if each not in old.allowed_locations))
    config = structs.replace(old, allowed_locations=allowed)
    new_base = resolve_location(base).text if base else entity.base_location
    if isinstance(config, FileStorage):
        _refuse_s3(s3)
        return Chosen(new_base, config, None)
    return Chosen(new_base, _apply(config, s3), _keys(s3))


def _apply(config: S3Storage, s3: S3Params) -> S3Storage:
    return structs.replace(
        config,
        region=config.region if s3.region is None else s3.region,
        endpoint=config.endpoint if s3.endpoint is None else s3.endpoint or None,
        path_style_access=config.path_style_access if s3.path_style is None else s3.path_style,
    )


def _keys(s3: S3Params) -> S3Keys | None:
    if not s3.access_key_id and not s3.secret_access_key:
        return None
    if not s3.access_key_id or not s3.secret_access_key:
        raise BadInput(
            "An access key needs its id and its secret",
            field="s3-access-key-id",
            fix="Give --s3-access-key-id, and --s3-secret-access-key-file or --s3-secret-access-key-env.",
        )
    return S3Keys(s3.access_key_id, Secret(s3.secret_access_key))


def _refuse_s3(s3: S3Params) -> None:
    if s3 != S3Params():
        raise BadInput(
            "Local files need no S3 options",
            field="location",
            fix="Give a location that begins with s3://, or leave the S3 options out.",
        )
