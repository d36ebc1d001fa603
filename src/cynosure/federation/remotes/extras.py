"""Packages that a kind of remote needs beyond the server's own, which come with an extra."""

from importlib.util import find_spec
from typing import Final

from cynosure.catalog.connection import ConnectionType
from cynosure.common.errors import BadInput

_NEEDED: Final[dict[ConnectionType, tuple[str, str]]] = {"SQL": ("asyncpg", "postgres")}
"""Package and extra."""


class MissingExtra(BadInput):
    """This server was installed without what a connection of this type needs."""

    def __init__(self, kind: ConnectionType, extra: str) -> None:
        super().__init__(
            "This server was installed without what such a connection needs",
            field="connectionConfigInfo.connectionType",
            fix=f"Have it installed with its extra: pip install 'cynosure[{extra}]'",
            type=kind,
            extra=extra,
        )


def require_extras(kind: ConnectionType) -> None:
    """Refuse a kind of connection whose packages are not installed."""
    needed = _NEEDED.get(kind)
    if needed is not None and find_spec(needed[0]) is None:
        raise MissingExtra(kind, needed[1])
