"""OAuth scopes: which of its principal roles a token activates.

`PRINCIPAL_ROLE:ALL` asks for all roles, `PRINCIPAL_ROLE:name` for one; several are separated by blanks. A
role with a blank in its name can therefore only be had with all others.

Must not break: a scope can only take roles away.
"""

from typing import Final

from cynosure.auth.tokens.errors import TokenRefused

_ROLE: Final = "PRINCIPAL_ROLE:"
ALL: Final = f"{_ROLE}ALL"
_GENERAL: Final = frozenset({"catalog", "sign"})
"""What Iceberg clients ask for unless they are told otherwise. Says nothing about roles."""

Roles = tuple[str, ...] | None
"""Names of the roles that are asked for, sorted; `None` asks for all."""


def parse_scope(text: str) -> Roles:
    """The roles that a scope asks for; an empty one asks for all. `invalid_scope` for anything else."""
    words = set(text.split(" ")) - {""} - _GENERAL
    names = {word.removeprefix(_ROLE) for word in words}
    if not all(word.startswith(_ROLE) for word in words) or "" in names:
        raise TokenRefused(
            "invalid_scope",
            "A scope is not of this server",
            fix="Ask for PRINCIPAL_ROLE:ALL, or PRINCIPAL_ROLE:name for each role.",
        )
    return None if not words or ALL in words else tuple(sorted(names))


def narrow_scope(had: Roles, wanted: Roles) -> Roles:
    """The roles of a token that is issued for another one; `invalid_scope` if it would have more."""
    if wanted is None or had is None:
        return had if wanted is None else wanted
    if not set(had) >= set(wanted):
        raise TokenRefused(
            "invalid_scope",
            "The token does not have a role that is asked for",
            fix="Ask for roles of the token, or get a token with the client's secret.",
        )
    return wanted


def format_scope(roles: Roles) -> str:
    """As tokens and answers say it."""
    return ALL if roles is None else " ".join(f"{_ROLE}{name}" for name in roles)
