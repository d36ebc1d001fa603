"""Groups of another issuer's account, as principal roles of ours.

Must not break: this only names roles. Of those only the ones that are marked as federated can be had this way
(`standing.py`), so an issuer cannot give roles that are ours to assign.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cynosure.auth.settings import OidcSettings
from cynosure.common.errors import Misconfigured


class RolesOfGroups:
    """Turns the groups in a token into names of roles, as the settings say."""

    def __init__(self, name: str, settings: OidcSettings) -> None:
        self._claim = settings.groups_claim
        self._by_group = settings.roles
        self._prefix = settings.role_prefix
        self._replacement = settings.role_replacement
        self._pattern: re.Pattern[str] | None = None
        if settings.role_pattern:
            try:
                self._pattern = re.compile(settings.role_pattern)
                self._pattern.sub(self._replacement, "")
            except (re.error, IndexError) as error:
                raise Misconfigured(
                    "The pattern for groups cannot be used",
                    fix="Write a regular expression, and a replacement with groups that it has.",
                    key=f"auth.oidc.{name}.role_pattern",
                    reason=str(error),
                ) from error

    def list_roles(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the roles, sorted, each once."""
        return tuple(sorted({role for group in self._groups(claims) if (role := self._role(group))}))

    def _groups(self, claims: Mapping[str, Any]) -> Iterator[str]:
        value = find_claim(claims, self._claim)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield each

    def _role(self, group: str) -> str:
        if group in self._by_group:
            return self._by_group[group]
        if self._prefix and group.startswith(self._prefix):
            return group.removeprefix(self._prefix)
        if self._pattern is not None:
            match = self._pattern.fullmatch(group)
            return match.expand(self._replacement) if match else ""
        # Without any rule a group is called like its role.
        return "" if self._prefix or self._by_group else group


def find_claim(claims: Mapping[str, Any], name: str) -> Any:
    """The claim of this name, or at this path with dots into objects; `None` when there is none."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value
