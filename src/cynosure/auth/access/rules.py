"""What does not follow from privileges: the few rules about credentials and about oneself.

Asked by the authorizer before it looks at any grant, for enforcement and explanation alike.

Must not break: a rule that refuses comes before a rule that allows, with one exception: whoever must rotate
its credentials may do exactly that.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cynosure.auth.entities import ROOT
from cynosure.auth.ports import Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standing


class Ruling(Struct, frozen=True):
    """An answer that no grant changes."""

    is_allowed: bool
    reason: str


_CREDENTIALS: Final = frozenset({ops.ROTATE_CREDENTIALS.name, ops.RESET_CREDENTIALS.name})
_LASTING: Final = (
    _CREDENTIALS
    | {ops.CREATE_PRINCIPAL.name, ops.TRUST_SERVICE.name}
    | {ops.ASSIGN_PRINCIPAL_ROLE.name, ops.ASSIGN_CATALOG_ROLE.name}
    | {name for name in ops.OPERATIONS if name.startswith("grant-on-") or "-restriction" in name}
)
"""What gives a secret or rights, or lifts a restriction, which outlives the token it was asked for with."""
_RULED: Final = _CREDENTIALS | {ops.EXPLAIN_ACCESS.name}

OPERATOR: Final = Ruling(True, "The operator of this machine may do everything.")
NOBODY: Final = Ruling(False, "Authenticate: nobody is known to have asked.")
_OWN_CREDENTIALS: Final = Ruling(True, "Everyone may rotate their own credentials.")
_OWN_ACCESS: Final = Ruling(True, "Everyone may have their own access explained.")
_ROTATE_FIRST: Final = Ruling(
    False, "Rotate the principal's credentials first: until then they allow no more."
)
_ACTOR_ROTATES_FIRST: Final = Ruling(
    False, "Rotate the acting service's credentials first: until then they allow no more."
)
_NOT_FOR_OTHERS: Final = Ruling(
    False, "Let the principal itself do this: a service that acts for it gives no rights or credentials."
)
_ONLY_ROOT: Final = Ruling(False, "Ask root: only the principal root may reset credentials.")
_RESET_IS_OFF: Final = Ruling(False, "Rotate instead: resetting is switched off (auth.credential_reset).")


def find_lock(standing: Standing, settings: AuthSettings) -> Ruling | None:
    """Why this principal can do nothing but rotate its credentials; `None` when it can."""
    if settings.enforce_rotation:
        if standing.principal.is_rotation_required:
            return _ROTATE_FIRST
        if standing.actor is not None and standing.actor.is_rotation_required:
            return _ACTOR_ROTATES_FIRST
    return None


def find_ruling(
    standing: Standing, operation: Operation, targets: Sequence[Target], settings: AuthSettings
) -> Ruling | None:
    """What the rules say; `None` when privileges decide."""
    name = operation.name
    if standing.actor is not None and name in _LASTING:
        # Who acts for a user must not come to hold what is good without the user.
        return _NOT_FOR_OTHERS
    if name not in _RULED:
        return find_lock(standing, settings)
    is_own = all(target.name == standing.principal.name for target in targets)
    if name == ops.ROTATE_CREDENTIALS.name and is_own:
        return _OWN_CREDENTIALS
    lock = find_lock(standing, settings)
    if lock is not None:
        return lock
    if name == ops.RESET_CREDENTIALS.name:
        if standing.principal.name != ROOT:
            return _ONLY_ROOT
        return None if settings.credential_reset else _RESET_IS_OFF
    return _OWN_ACCESS if name == ops.EXPLAIN_ACCESS.name and is_own else None
