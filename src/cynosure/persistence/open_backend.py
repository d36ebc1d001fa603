"""Choose a backend by the scheme of its URL, among those that installed packages offer.

A maintainer must not break: the URL may hold a password, so no message shows more of it than its scheme.
"""

import re
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from types import MappingProxyType
from typing import cast

from cynosure.common.errors import Misconfigured
from cynosure.persistence.installed import list_offers
from cynosure.persistence.spi import Backend, BackendFactory

BACKENDS_GROUP = "cynosure.backends"
"""Entry-point group; an entry's name is the URL scheme, its value a `BackendFactory`."""

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):")


def open_backend(url: str, options: Mapping[str, str] = NO_OPTIONS) -> Backend:
    """Make the backend for `url` without connecting. Whatever is wrong with the URL is `Misconfigured`."""
    found = _SCHEME.match(url)
    if not found:
        raise Misconfigured(
            "The database URL does not begin with a scheme",
            fix=f"Begin it with one of: {_offered()}. For example: sqlite:catalog.db",
        )
    return _load_factory(found.group(1))(url, options)


def _load_factory(scheme: str) -> BackendFactory:
    entries = [entry for entry in list_offers(BACKENDS_GROUP) if entry.name == scheme]
    if not entries:
        raise Misconfigured(
            "No installed package offers this kind of database",
            fix=f"Use one of: {_offered()}, or install the package that offers it.",
            scheme=scheme,
        )
    if len(entries) > 1:
        raise Misconfigured(
            "Several installed packages offer this kind of database",
            fix="Uninstall all but one of them.",
            scheme=scheme,
            packages=sorted(_package(entry) for entry in entries),
        )
    (entry,) = entries
    try:
        factory = entry.load()
    except (ImportError, AttributeError) as error:
        raise Misconfigured(
            "The package that offers this kind of database cannot be loaded",
            fix="Install it again with everything it needs.",
            scheme=scheme,
            package=_package(entry),
            reason=str(error),
        ) from error
    return cast(BackendFactory, factory)


def _offered() -> str:
    return ", ".join(sorted({f"{entry.name}:" for entry in list_offers(BACKENDS_GROUP)})) or "(none)"


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module
