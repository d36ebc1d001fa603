"""Changes to one principal or role, as the operations make them.

Must not break: what the change feed says holds no secret; the entity, with what is kept of its secrets, is
only pointed to, or sealed under the Idempotency-Key of who asked for the change.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.entities import PRINCIPAL, PRINCIPAL_ROLE, PrincipalEntity, PrincipalRoleEntity
from cynosure.auth.identities import Identities
from cynosure.auth.principals import principal_key, require_principal, require_role, role_key
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.receipts import Recall, Sealed
from cynosure.auth.targets import PrincipalRoleTarget, PrincipalTarget
from cynosure.common.errors import Conflict
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.objects import ObjectType, ObjRef
from cynosure.persistence.store import NewObject

E = TypeVar("E", PrincipalEntity, PrincipalRoleEntity)

# Sealed, because what is kept of a principal's secrets comes with it, and because what properties say is for
# those only who may load what has them.
RECALL_PRINCIPAL: Final[Recall[PrincipalEntity]] = Sealed(PrincipalEntity)
RECALL_ROLE: Final[Recall[PrincipalRoleEntity]] = Sealed(PrincipalRoleEntity)


def told(
    kind: str,
    entity: PrincipalEntity | PrincipalRoleEntity,
    *,
    before: bytes | None = None,
    after: bytes | None = None,
    **detail: str | bool,
) -> Change:
    """What the change feed says about an entity."""
    is_principal = isinstance(entity, PrincipalEntity)
    key = principal_key(entity.name) if is_principal else role_key(entity.name)
    return Change(
        kind=kind,
        index="names",
        key=key,
        before=before,
        after=after,
        detail=raw_detail({"id": str(entity.id), "name": entity.name, **detail}),
    )


def require_version(entity: PrincipalEntity | PrincipalRoleEntity, version: int) -> None:
    """Refuse a change that was thought out on another version."""
    if entity.version != version:
        raise Conflict(
            "It has been changed meanwhile",
            fix="Load it and change it again.",
            name=entity.name,
            version=entity.version,
        )


async def change_principal(
    identities: Identities,
    caller: Caller,
    operation: Operation,
    name: str,
    apply: Callable[[PrincipalEntity], PrincipalEntity],
    *,
    kind: str,
    **detail: str | bool,
) -> PrincipalEntity:
    """Put a new version of a principal in place of the current one; nothing when they are the same."""

    async def prepare(view: View) -> Prepared[PrincipalEntity]:
        return await prepare_principal(identities, view, name, apply, kind=kind, **detail)

    return await identities.commit(caller, operation, (PrincipalTarget(name),), prepare, RECALL_PRINCIPAL)


async def prepare_principal(
    identities: Identities,
    view: View,
    name: str,
    apply: Callable[[PrincipalEntity], PrincipalEntity],
    *,
    kind: str,
    **detail: str | bool,
) -> Prepared[PrincipalEntity]:
    """The change that `change_principal` makes."""
    ref, entity = await require_principal(view, name)
    return _replaced(identities, PRINCIPAL, ref, entity, apply(entity), kind, detail)


async def change_role(
    identities: Identities,
    caller: Caller,
    operation: Operation,
    name: str,
    apply: Callable[[PrincipalRoleEntity], PrincipalRoleEntity],
    *,
    kind: str,
) -> PrincipalRoleEntity:
    """As `change_principal`, of a principal role."""

    async def prepare(view: View) -> Prepared[PrincipalRoleEntity]:
        ref, entity = await require_role(view, name)
        return _replaced(identities, PRINCIPAL_ROLE, ref, entity, apply(entity), kind, {})

    return await identities.commit(caller, operation, (PrincipalRoleTarget(name),), prepare, RECALL_ROLE)


def _replaced(
    identities: Identities,
    object_type: ObjectType[E],
    ref: ObjRef,
    before: E,
    applied: E,
    kind: str,
    detail: dict[str, str | bool],
) -> Prepared[E]:
    if applied == before:
        return Prepared(before)
    persistence = identities.persistence
    entity = structs.replace(
        applied,
        version=before.version + 1,
        updated_us=max(persistence.clock.now_us(), before.updated_us),
    )
    new = NewObject(object_type, persistence.ids.next(), entity)
    value = ObjRef(new.id, object_type.name).pack()
    change = told(kind, entity, before=ref.pack(), after=value, **detail)
    return Prepared(entity, {"names": {change.key: value}}, [new], [change])
