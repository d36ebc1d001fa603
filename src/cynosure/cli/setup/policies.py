"""Policies in setup files: what a file says, the steps to it, and a file from what there is.

A maintainer must not break: a step is planned only if it changes something. What a policy is attached with
(its parameters) is not told by a server, so it is set when it is attached, and not compared afterwards.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, field

from cynosure.cli.setup.levels import Levels, levels_of
from cynosure.client.catalog import Namespace
from cynosure.client.policies import Policy, PolicyTarget
from cynosure.common.errors import NotFound

if TYPE_CHECKING:
    from cynosure.cli.transport import Server

Place = tuple[Namespace, str]
"""A policy: its namespace and name."""


class AttachmentPart(Struct, frozen=True, forbid_unknown_fields=True):
    """What a policy is attached to."""

    type: Literal["catalog", "namespace", "table-like"]
    path: Levels | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    def target(self) -> PolicyTarget:
        """As the API names it."""
        return PolicyTarget(self.type, levels_of(self.path) if self.path else ())


class PolicyPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy."""

    namespace: Levels
    type: str
    name: str = ""
    """Left out where the file has policies by name."""
    content: str | dict[str, Any] | None = None
    """JSON as text, or written out."""
    file: str | None = None
    """With the content in it; relative to the setup file."""
    description: str | None = None
    attach: list[AttachmentPart] = field(default_factory=list)

    def content_text(self) -> str:
        """The content as the API takes it."""
        if isinstance(self.content, dict):
            return msgspec.json.encode(self.content).decode()
        return self.content or ""


Parts = dict[str, PolicyPart] | list[PolicyPart]


class PresentPolicies(Struct, frozen=True):
    """What a server has of the policies that a file speaks of."""

    policies: Mapping[Place, Policy] = field(default_factory=dict)
    attached: frozenset[tuple[PolicyTarget, Place]] = frozenset()


class PolicyStep(Struct, frozen=True):
    """One change to a policy: what `plan.Step` is made from."""

    action: Literal["create", "update", "attach", "refuse"]
    names: tuple[str, ...]
    text: str
    place: Place
    part: PolicyPart
    attachment: AttachmentPart | None = None


def named(parts: Parts) -> list[PolicyPart]:
    """Every policy with its name in it."""
    if isinstance(parts, dict):
        return [msgspec.structs.replace(part, name=name) for name, part in parts.items()]
    return parts


def check_policies(parts: Parts) -> str:
    """What cannot be understood; empty when all can."""
    for part in named(parts):
        if not part.name:
            return "A policy has no name"
        if (part.content is None) == (part.file is None):
            return f"Policy {part.name} needs either content or a file"
        if any((each.type == "catalog") == bool(each.path) for each in part.attach):
            return f"Policy {part.name}: an attachment needs a path, unless it is to the catalog"
    return ""


def read_files(parts: Parts, folder: Path) -> list[PolicyPart]:
    """The same with the content of files in it; errors of reading them as they come."""
    found = []
    for part in named(parts):
        if part.file is None:
            found.append(part)
        else:
            text = (folder / part.file).read_text(encoding="utf-8")
            found.append(msgspec.structs.replace(part, content=text, file=None))
    return found


def place_of(part: PolicyPart) -> Place:
    """A policy by its namespace and name."""
    return levels_of(part.namespace), part.name


def plan_policies(parts: Parts, present: PresentPolicies) -> Iterable[PolicyStep]:
    """The steps from what there is to what the file says."""
    for part in named(parts):
        place = place_of(part)
        name = ".".join((*place[0], place[1]))
        found = present.policies.get(place)
        if found is None:
            yield PolicyStep("create", (*place[0], place[1]), f"policy {name}", place, part)
        elif found.policy_type != part.type:
            text = f"policy {name}: its type is {found.policy_type}, not {part.type}, and stays so"
            yield PolicyStep("refuse", (*place[0], place[1]), text, place, part)
            continue
        elif changed := _changed(found, part):
            yield PolicyStep(
                "update", (*place[0], place[1]), f"policy {name}: {', '.join(changed)}", place, part
            )
        for each in part.attach:
            target = each.target()
            if (target, place) not in present.attached:
                where = ".".join(target.path) or "the catalog"
                text = f"policy {name} to {where}"
                yield PolicyStep("attach", (*place[0], place[1], each.type, where), text, place, part, each)


async def apply_policy(server: "Server", catalog: str, step: PolicyStep) -> None:
    """Do one step."""
    api = server.policies(catalog)
    namespace, name = step.place
    part = step.part
    match step.action:
        case "create":
            wanted = Policy(
                name=name,
                policy_type=part.type,
                content=part.content_text(),
                description=part.description,
            )
            await api.create(namespace, wanted)
        case "update":
            await api.update(namespace, name, content=part.content_text(), description=part.description)
        case _:
            assert step.attachment is not None  # noqa: S101 - a step that attaches has one
            await api.attach(namespace, name, step.attachment.target(), step.attachment.parameters)


async def load_policies(server: "Server", catalog: str, parts: Parts) -> PresentPolicies:
    """What the server has of these policies."""
    api = server.policies(catalog)
    policies: dict[Place, Policy] = {}
    attached: set[tuple[PolicyTarget, Place]] = set()
    for part in named(parts):
        namespace, name = place = place_of(part)
        try:
            policies[place] = await api.load(namespace, name)
        except NotFound:
            continue
        for each in part.attach:
            attached |= {
                (each.target(), found) for found in await _attached_to(server, catalog, each.target())
            }
    return PresentPolicies(policies, frozenset(attached))


async def export_policies(
    server: "Server", catalog: str, namespaces: Iterable[Namespace]
) -> list[dict[str, Any]]:
    """The policies of a catalog, and what they are attached to."""
    api, entries = server.policies(catalog), server.catalog(catalog)
    spaces = list(namespaces)
    found: dict[Place, dict[str, Any]] = {}
    for namespace in spaces:
        for each in await api.list_all(namespace):
            policy = await api.load(namespace, each.name)
            found[namespace, each.name] = {
                "name": policy.name,
                "namespace": list(namespace),
                "type": policy.policy_type,
                **({"description": policy.description} if policy.description else {}),
                "content": policy.content,
            }
    if not found:
        # Nothing can be attached, so no table has to be asked about.
        return []
    targets = [PolicyTarget("catalog"), *(PolicyTarget("namespace", each) for each in spaces)]
    for namespace in spaces:
        tables = await entries.list_tables(namespace)
        targets += [PolicyTarget("table-like", (*namespace, each.name)) for each in tables]
    for target in targets:
        path = {"path": list(target.path)} if target.path else {}
        for place in await _attached_to(server, catalog, target):
            found[place].setdefault("attach", []).append({"type": target.type, **path})
    return list(found.values())


async def _attached_to(server: "Server", catalog: str, target: PolicyTarget) -> list[Place]:
    """The policies that are attached to a target itself; none when there is no such target."""
    try:
        found = await server.policies(catalog).list_applicable(target)
    except NotFound:
        return []
    return [(each.namespace, each.name) for each in found if not each.inherited]


def _changed(found: Policy, part: PolicyPart) -> list[str]:
    changed = []
    if _meaning(found.content or "") != _meaning(part.content_text()):
        changed.append("content")
    if part.description is not None and part.description != found.description:
        changed.append("description")
    return changed


def _meaning(content: str) -> Any:
    """Content as it is compared: JSON that only looks different is the same."""
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content
