"""Properties of a federated catalog that say how its remote is treated: read once, checked when they are set.

What is left out is as the server's settings say (`cynosure.federation.settings`).

Must not break: these are for catalogs with a connection only. On any other one they would say nothing, and
whoever set them would believe that they did.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, Literal

from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.common.settings.values import DurationOrZero, Unusable, parse_value

PREFIX: Final = "cynosure.federation."

Credentials = Literal["own", "remote", "none"]
"""Whose credentials clients get: of the catalog's own storage, the remote's, narrowed, or none."""
Grants = Literal["validated", "by-name"]
"""Whether a grant on a table is for the one that the remote has now, or for whichever has the name."""


class FederatedProperties(Struct, frozen=True, kw_only=True):
    """What a catalog says of its own; `None`: nothing."""

    max_staleness: timedelta | None = None
    stale_if_down: timedelta | None = None
    read_only: bool | None = None
    credentials: Credentials | None = None
    grants: Grants | None = None


_KINDS: Final[dict[str, Any]] = {
    "max-staleness": DurationOrZero,
    "stale-if-down": DurationOrZero,
    "read-only": bool,
    "credentials": Credentials,
    "grants": Grants,
}
NAMES: Final = tuple(PREFIX + name for name in _KINDS)
"""The properties, in full."""


def is_federated_property(name: str) -> bool:
    """Whether a property is about remotes, or claims to be."""
    return name.strip().lower().startswith(PREFIX)


def read_federated_properties(properties: Mapping[str, str]) -> FederatedProperties:
    """What a catalog's properties say. `BadInput` for values that cannot be read."""
    return _read(tuple(properties.get(name) for name in NAMES))


def check_federated_properties(properties: Mapping[str, str], *, is_federated: bool) -> None:
    """Refuse what no federated catalog can have, and all of it on a catalog that is none."""
    for name in properties:
        if not is_federated_property(name):
            continue
        if not is_federated:
            raise BadInput(
                "The property is for federated catalogs only",
                field=f"properties.{name}",
                fix="Leave it out; this catalog has no connection to a remote.",
            )
        if name not in NAMES:
            raise BadInput(
                "There is no such property",
                field=f"properties.{name}",
                fix=f"Use one of {', '.join(NAMES)}.",
            )
    read_federated_properties(properties)


@lru_cache(maxsize=1_024)
def _read(values: tuple[str | None, ...]) -> FederatedProperties:
    # Asked for in every request, and the same few answers every time.
    given = {
        name.replace("-", "_"): _parse(name, value)
        for name, value in zip(_KINDS, values, strict=True)
        if value is not None
    }
    return FederatedProperties(**given)


def _parse(name: str, value: str) -> Any:
    try:
        return parse_value(_KINDS[name], value.strip(), is_text=True)
    except Unusable as unusable:
        raise BadInput(
            "The property has a value that cannot be read",
            field=f"properties.{PREFIX}{name}",
            fix=str(unusable),
        ) from unusable
