"""The principals and principal roles of all realms, as one process uses them.

Operations are functions `operation(identities, caller, …)` in `operations/`, one file each.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from cynosure.auth.caller import Caller
from cynosure.auth.closing import require_open
from cynosure.auth.committing import commit_as
from cynosure.auth.errors import NoSuchPrincipal, NoSuchPrincipalRole
from cynosure.auth.ports import Authorizer, Target
from cynosure.auth.principals import require_principal, require_role
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Recall
from cynosure.auth.require import AccessDenied, require_allowed
from cynosure.auth.secret_hash import SecretHasher
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standings
from cynosure.auth.targets import PrincipalRoleTarget, PrincipalTarget
from cynosure.persistence.commit import Committer, Prepared, State, View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import realm_reference
from cynosure.persistence.spi import ObjId, RealmId, RefKey

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Identities:
    """What the operations of one process share."""

    persistence: Persistence
    standings: Standings
    authorizer: Authorizer
    settings: AuthSettings
    hasher: SecretHasher
    random_hex: Callable[[int], str] = secrets.token_hex
    """Makes client ids and secrets, two digits per byte asked for. Unpredictable, except in tests."""

    def committer(self, realm: RealmId) -> Committer:
        """The committer of a realm's principals. The realm must exist: one is kept for each."""
        return self.persistence.committer(realm_reference(realm, "principals"))

    async def read(self, realm: RealmId) -> State:
        """The current principals of a realm, linearizable."""
        return (await self.committer(realm).read()).state

    async def authorize(
        self, caller: Caller, operation: Operation, *targets: Target, view: View | None = None
    ) -> Mapping[RefKey, ObjId]:
        """Refuse what the caller may not do; what the permission rests on, for `Prepared.guards`.

        What does not exist is refused first, as such. Where existence is hidden, what the caller may not
        touch is refused the same way. `view` is the state to look in; left out, the current one.
        """
        if not self.settings.hide_existence:
            await _require_targets(view or await self.read(caller.realm), targets)
        try:
            return await require_allowed(self.authorizer, caller, operation, targets, None)
        except AccessDenied as denied:
            if self.settings.hide_existence:
                _hide(targets, denied)
            raise

    async def commit(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        prepare: Callable[[View], Awaitable[Prepared[R]]],
        recall: Recall[R],
    ) -> R:
        """Commit a change to the principals of the caller's realm, if it may be made."""

        async def check(view: View) -> Mapping[RefKey, ObjId]:
            return await self.authorize(caller, operation, *targets, view=view)

        async def authorized(view: View) -> Prepared[R]:
            await require_open(view)
            guards = await check(view)
            prepared = await prepare(view)
            return replace(prepared, guards={**guards, **prepared.guards})

        committer = self.committer(caller.realm)
        return (
            await commit_as(committer, caller, operation.name, authorized, check=check, recall=recall)
        ).result


async def _require_targets(view: View, targets: tuple[Target, ...]) -> None:
    for target in targets:
        if isinstance(target, PrincipalTarget):
            await require_principal(view, target.name)
        elif isinstance(target, PrincipalRoleTarget):
            await require_role(view, target.name)


def _hide(targets: tuple[Target, ...], denied: AccessDenied) -> None:
    """Say what would be said if the first of the targets did not exist; the cause is for the audit."""
    for target in targets:
        if isinstance(target, PrincipalTarget):
            raise NoSuchPrincipal(target.name) from denied
        if isinstance(target, PrincipalRoleTarget):
            raise NoSuchPrincipalRole(target.name) from denied
