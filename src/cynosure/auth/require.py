"""A decision made binding: what is not allowed raises.

Must not break: this is the only place that turns a decision into a refusal, so that a denial reads the same
and is recorded the same wherever it happens.
"""

from collections.abc import Mapping

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Authorizer, Decision, Target
from cynosure.auth.rbac.operations import Operation
from cynosure.common.errors import Forbidden
from cynosure.persistence.commit import View
from cynosure.persistence.spi import ObjId, RefKey


class AccessDenied(Forbidden):
    """The caller lacks a privilege. Carries the decision for the audit."""

    def __init__(
        self, caller: Caller, operation: Operation, targets: tuple[Target, ...], decision: Decision
    ) -> None:
        missing = decision.missing
        super().__init__(
            "Principal is not authorized for this operation",
            fix=_fix(decision),
            principal=caller.principal,
            operation=operation.name,
            target=" and ".join(f"{each.kind} {each.name}".rstrip() for each in targets),
            **({"missing": ", ".join(sorted({each.privilege for each in missing}))} if missing else {}),
        )
        self.operation = operation
        self.targets = targets
        self.decision = decision


def _fix(decision: Decision) -> str:
    if not decision.missing:
        return decision.reason or "Ask an administrator."
    first = decision.missing[0]
    where = f"{first.target_kind} {first.target}".rstrip()
    return f"Have {first.privilege} (or one that includes it) granted on {where} or above it."


async def require_allowed(
    authorizer: Authorizer,
    caller: Caller,
    operation: Operation,
    targets: tuple[Target, ...],
    view: View | None,
) -> Mapping[RefKey, ObjId]:
    """Nothing when it may be done, but the heads that rests on; else `AccessDenied`."""
    if caller.is_operator:
        return {}
    decision = await authorizer.decide(caller, operation, targets, view)
    if not decision.is_allowed:
        raise AccessDenied(caller, operation, targets, decision)
    return decision.guards
