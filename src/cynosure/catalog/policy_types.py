"""Every type of policies that this version knows, and what follows from a policy's type.

A type that another package brings is added here.

Must not break: whether a policy restricts is decided by the type that is stored with it, in the state that
the decision is made on, never by what a request says about it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import OPERATIONS, Operation
from cynosure.catalog.entities import POLICY, PolicyEntity
from cynosure.catalog.errors import InvalidPolicy
from cynosure.catalog.names import Identifier, policy_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.system_types import SYSTEM_TYPES
from cynosure.catalog.policies.types import PolicyType
from cynosure.catalog.restrictions.types import RESTRICTION_TYPES
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import View, find_object

POLICY_TYPES: Final[Mapping[str, PolicyType]] = MappingProxyType(
    {each.name: each for each in (*SYSTEM_TYPES, *RESTRICTION_TYPES)}
)
"""By name."""

MAX_CONTENT_BYTES: Final = 65_536
MAX_DESCRIPTION_CHARS: Final = 4_096


def get_policy_type(name: str, *, field: str = "type") -> PolicyType:
    """The type of this name; `BadInput` when there is none."""
    found = POLICY_TYPES.get(name)
    if found is None:
        raise BadInput(
            "There is no such type of policies",
            field=field,
            fix=f"Choose one of {', '.join(sorted(POLICY_TYPES))}.",
            type=name,
        )
    return found


def parse_content(kind: PolicyType, content: str | None) -> object:
    """What the content of a policy says; `InvalidPolicy` for one that its type does not take."""
    if not content:
        raise InvalidPolicy(
            "The policy has no content", field="content", fix="Say what the policy is to do.", type=kind.name
        )
    size_bytes = len(content.encode(errors="replace"))
    if size_bytes > MAX_CONTENT_BYTES:
        raise InvalidPolicy(
            "The content of the policy is too large",
            field="content",
            fix=f"Use at most {MAX_CONTENT_BYTES} bytes.",
            size_bytes=size_bytes,
        )
    return kind.parse(content)


def check_description(description: str | None) -> None:
    """Refuse a description that is too long."""
    if description is not None and len(description) > MAX_DESCRIPTION_CHARS:
        raise BadInput(
            "The description is too long",
            field="description",
            fix=f"Use at most {MAX_DESCRIPTION_CHARS} characters.",
            characters=len(description),
        )


def is_restriction(policy_type: str) -> bool:
    """Whether policies of this type restrict what is read.

    Ours do, also those that only a newer version knows: who may manage content must not manage them here.
    """
    found = POLICY_TYPES.get(policy_type)
    return found.is_restriction if found is not None else policy_type.startswith("cynosure.")


async def find_policy(view: View, path: Identifier) -> PolicyEntity | None:
    """The policy, or `None`."""
    return await find_object(view, "names", policy_key(path), POLICY)


async def choose_operation(
    view: View, path: Identifier, plain: Operation, restricting: Operation
) -> Operation:
    """Which of two operations it is to do this to a policy; of one that does not exist, the plain one."""
    policy = await find_policy(view, path)
    return restricting if policy is not None and is_restriction(policy.type) else plain


async def name_operation(
    catalog: OpenCatalog, path: Identifier, plain: Operation, restricting: Operation
) -> str:
    """What the log calls it. Only a name: what must be allowed is chosen again where it is decided."""
    return (await choose_operation(await catalog.read(), path, plain, restricting)).name


def create_operation(policy_type: str) -> Operation:
    """What it is to create a policy of this type."""
    return ops.CREATE_RESTRICTION if is_restriction(policy_type) else ops.CREATE_POLICY


def attach_operations(kind: str) -> tuple[Operation, Operation]:
    """What it is to attach a policy to such a thing: one that does not restrict, one that does."""
    return OPERATIONS[f"attach-policy-to-{kind}"], OPERATIONS[f"attach-restriction-to-{kind}"]


def detach_operations(kind: str) -> tuple[Operation, Operation]:
    """What it is to detach a policy from such a thing: one that does not restrict, one that does."""
    return OPERATIONS[f"detach-policy-from-{kind}"], OPERATIONS[f"detach-restriction-from-{kind}"]
