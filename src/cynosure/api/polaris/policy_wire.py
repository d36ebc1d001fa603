"""Bodies and queries of policies.

Must not break: names and shapes are those of the Polaris document, of which ours is a superset.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from cynosure.api.iceberg.wire import ListQuery, TableIdentifier
from cynosure.catalog.entities import PolicyEntity
from cynosure.catalog.names import Namespace
from cynosure.catalog.policies.applicable import Applicable
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.policy_types import POLICY_TYPES

PolicyName = Annotated[
    str, Meta(extra_json_schema={"minLength": 1, "maxLength": 128, "pattern": r"^[A-Za-z0-9\-_]+$"})
]
"""Described here, checked by the operations, which give better reasons."""


class ListPoliciesQuery(ListQuery, frozen=True, rename="camel"):
    """Query of listPolicies."""

    policy_type: str | None = None
    """Empty counts as absent."""


class ApplicableQuery(ListPoliciesQuery, frozen=True, rename="camel"):
    """Query of getApplicablePolicies. Neither: the catalog."""

    namespace: str | None = None
    target_name: str | None = field(default=None, name="target-name")


class DropPolicyQuery(Struct, frozen=True, rename="kebab"):
    """Query of dropPolicy."""

    detach_all: bool = False


class CreatePolicyRequest(Struct, frozen=True):
    """Body of createPolicy."""

    name: PolicyName
    type: str
    description: str | None = None
    content: str | None = None


class UpdatePolicyRequest(Struct, frozen=True, rename="kebab"):
    """Body of updatePolicy. What is left out stays as it is."""

    description: str | None = None
    content: str | None = None
    current_policy_version: int | None = None


class PolicyAttachmentTarget(Struct, frozen=True):
    """What a policy is attached to."""

    type: Literal["catalog", "namespace", "table-like"]
    path: list[str] | None = None

    def checked(self) -> AttachTo:
        """As the operations name it."""
        return AttachTo(self.type, tuple(self.path or ()))


class AttachPolicyRequest(Struct, frozen=True):
    """Body of attachPolicy."""

    target: PolicyAttachmentTarget
    parameters: dict[str, str] | None = None


class DetachPolicyRequest(Struct, frozen=True):
    """Body of detachPolicy."""

    target: PolicyAttachmentTarget


class Policy(Struct, frozen=True, rename="kebab", omit_defaults=True, kw_only=True):
    """A policy."""

    policy_type: str
    inheritable: bool
    name: PolicyName
    version: int
    description: str | None = None
    content: str | None = None


class ApplicablePolicy(Policy, frozen=True, rename="kebab", omit_defaults=True, kw_only=True):
    """A policy that counts for something."""

    inherited: bool
    """Whether it is attached to something above what was asked about."""
    namespace: Namespace
    """Of the policy."""


class LoadPolicyResponse(Struct, frozen=True):
    """Answer of createPolicy, loadPolicy and updatePolicy."""

    policy: Policy


class ListPoliciesResponse(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Answer of listPolicies."""

    identifiers: list[TableIdentifier]
    next_page_token: str | None = None


class ApplicablePoliciesResponse(Struct, frozen=True, rename="kebab"):
    """Answer of getApplicablePolicies."""

    applicable_policies: list[ApplicablePolicy]
    next_page_token: str | None = None


def describe(name: str, policy: PolicyEntity) -> Policy:
    """A policy as clients see it."""
    return Policy(
        policy_type=policy.type,
        inheritable=_is_inheritable(policy.type),
        name=name,
        version=policy.version,
        description=policy.description,
        content=policy.content,
    )


def describe_applicable(found: Applicable) -> ApplicablePolicy:
    """A policy that counts for something, as clients see it."""
    attached = found.attached
    policy = attached.policy
    return ApplicablePolicy(
        policy_type=policy.type,
        inheritable=_is_inheritable(policy.type),
        name=attached.name,
        version=policy.version,
        description=policy.description,
        content=policy.content,
        inherited=found.is_inherited,
        namespace=attached.namespace,
    )


def _is_inheritable(policy_type: str) -> bool:
    known = POLICY_TYPES.get(policy_type)
    return known is not None and known.is_inheritable
