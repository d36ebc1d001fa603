"""`cynosure explain` and `cynosure whoami`: why somebody may or may not do something, and who one is.

A maintainer must not break: the answer is the server's, made by the code that enforces it. Here it is only
shown, with the commands that would change it.
"""

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct, field

from cynosure.cli.names import Separator, split_name
from cynosure.cli.output import print_fields, print_json, print_line
from cynosure.cli.remote import Remote, connected
from cynosure.common.errors import BadInput, Forbidden

if TYPE_CHECKING:
    from cynosure.cli.transport import Server

_LEAVES = ("table", "view", "policy")


class Need(Struct, frozen=True, rename="camel"):
    """What an operation needs of one target."""

    target_kind: str = ""
    target: str = ""
    privileges: tuple[str, ...] = ()


class Step(Struct, frozen=True, rename="camel"):
    """A grant that meets a need."""

    needed: str = ""
    held: str = ""
    principal_role: str = ""
    catalog_role: str = ""
    on_kind: str = ""
    on: str = ""


class Missing(Struct, frozen=True, rename="camel"):
    """A privilege that would be needed."""

    privilege: str = ""
    target_kind: str = ""
    target: str = ""


class Remedy(Struct, frozen=True, rename="camel"):
    """What could be granted instead, where."""

    missing: str = ""
    privileges: tuple[str, ...] = ()
    on_kind: str = ""
    on: str = ""


class Restriction(Struct, frozen=True, rename="camel"):
    """A policy that hides something of a table."""

    policy: str = ""
    type: str = ""
    on_kind: str = ""
    on: str = ""
    effect: str = ""


class Explanation(Struct, frozen=True, rename="camel"):
    """The server's answer."""

    is_allowed: bool = field(name="allowed")
    principal: str
    operation: str
    roles: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    path: tuple[Step, ...] = ()
    missing: tuple[Missing, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    reason: str = ""
    restrictions: tuple[Restriction, ...] = ()


class Who(Struct, frozen=True, rename="camel"):
    """Who a client is."""

    realm: str
    principal: str
    roles: tuple[str, ...] = ()
    actor: str | None = None


@connected
def explain(
    to: Remote,
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="Whose rights.")],
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="Such as load-table.")],
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="CATALOG, CATALOG/NAMESPACE, CATALOG/NAMESPACE.TABLE, …"),
    ] = "",
    second: Annotated[
        str, typer.Argument(metavar="[SECOND]", help="The other target, of renames and revocations.")
    ] = "",
    separator: Separator = ".",
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 when it is not allowed.")
    ] = False,
) -> None:
    """Say why a principal may or may not do something, and what would allow it.

    A TARGET is what the operation is about: `sales` (a catalog), `sales/eu.orders` (a namespace, or a table
    of `eu`, as the operation says), `sales/reader` (a catalog role), the name of a principal or principal
    role, or nothing for operations on the whole realm.

    Example: `cynosure explain alice load-table-to-read sales/eu.orders`

    Example: `cynosure explain alice create-catalog`
    """
    kinds = _find_kinds(operation)
    if len(kinds) == 1 and second:
        raise BadInput("The operation has one target", field="SECOND", fix="Leave the second one out.")
    question: dict[str, Any] = {
        "principal": principal,
        "operation": operation,
        "target": parse_target(kinds[0], target, separator),
    }
    if len(kinds) > 1:
        question["secondary"] = parse_target(kinds[1], second, separator)

    async def work(server: "Server") -> tuple[Explanation, list[str]]:
        found = await server.management.explain_access(question, Explanation)
        catalog = question["target"].get("catalog") or question.get("secondary", {}).get("catalog")
        commands = [] if found.is_allowed else await _find_commands(server, found, catalog, separator)
        return found, commands

    found, commands = to.run(work)
    if to.as_json:
        import msgspec

        print_json({**msgspec.to_builtins(found), "commands": commands})
    else:
        _print(found, commands)
    if exit_code and not found.is_allowed:
        raise typer.Exit(1)


@connected
def whoami(to: Remote) -> None:
    """Show who you are to the server: principal, realm, active roles."""
    found = to.run(lambda server: server.management.whoami(Who))
    if to.as_json:
        print_json(found)
        return
    print_fields(
        {
            "principal": found.principal,
            "realm": found.realm,
            "roles": ", ".join(found.roles) or "none",
            "through": found.actor,
        }
    )


def parse_target(kind: str, text: str, separator: str = ".") -> dict[str, Any]:
    """A target of this kind, as the server takes it."""
    if kind == "realm":
        if text:
            raise BadInput("The operation is on the whole realm", field="TARGET", fix="Leave the target out.")
        return {}
    if not text:
        raise BadInput("The operation needs a target", field="TARGET", fix=f"Name a {kind}.")
    if kind in ("principal", "principal-role", "catalog"):
        return {{"principal-role": "principalRole"}.get(kind, kind): text}
    catalog, _, rest = text.partition("/")
    if kind == "catalog-role":
        if not rest:
            raise BadInput("No role is named", field="TARGET", fix="Write CATALOG/ROLE.")
        return {"catalog": catalog, "catalogRole": rest}
    levels = split_name(rest, separator, field="TARGET") if rest else ()
    if kind not in _LEAVES:
        return {"catalog": catalog, "namespace": levels}
    if len(levels) < 2:
        raise BadInput(
            f"No {kind} is named",
            field="TARGET",
            fix=f"Write CATALOG/NAMESPACE{separator}{kind.upper()}.",
            target=text,
        )
    return {"catalog": catalog, "namespace": levels[:-1], kind: levels[-1]}


def _find_kinds(operation: str) -> tuple[str, ...]:
    from difflib import get_close_matches

    from cynosure.auth.rbac.operations import OPERATIONS

    found = OPERATIONS.get(operation)
    if found is None:
        close = get_close_matches(operation, OPERATIONS, n=3)
        raise BadInput(
            "There is no such operation",
            field="OPERATION",
            fix=f"Did you mean {' or '.join(close)}?"
            if close
            else f"Use one of {', '.join(sorted(OPERATIONS))}.",
            operation=operation,
        )
    return found.kinds


async def _find_commands(
    server: "Server", found: Explanation, catalog: str | None, separator: str
) -> list[str]:
    """Commands that would allow it: the narrowest grant for each privilege that is missing."""
    narrowest = _narrowest(found.remedies)
    if any(each.on_kind == "realm" for each in narrowest):
        # Rights on the realm cannot be granted one by one.
        return [_command("principal-roles", "grant", "service_admin", "--principal", found.principal)]
    wanted = [each for each in narrowest if each.on_kind in ("catalog", "namespace", *_LEAVES)]
    if not wanted or catalog is None:
        return []
    roles = [each for each in found.roles if each != "service_admin"]
    if not roles:
        role = f"{found.principal}-role"
        commands = [
            _command("principal-roles", "create", role),
            _command("principal-roles", "grant", role, "--principal", found.principal),
        ]
        roles = [role]
    else:
        commands = []
    catalog_role = await _find_catalog_role(server, roles, catalog)
    if catalog_role is None:
        catalog_role, of_catalog = f"{roles[0]}-rights", ("--catalog", catalog)
        commands += [
            _command("catalog-roles", "create", catalog_role, *of_catalog),
            _command("catalog-roles", "grant", catalog_role, *of_catalog, "--principal-role", roles[0]),
        ]
    for each in wanted:
        where: tuple[str, ...] = ()
        if each.on_kind == "namespace":
            where = ("--namespace", each.on)
        elif each.on_kind in _LEAVES:
            namespace, _, name = each.on.rpartition(separator)
            where = ("--namespace", namespace, f"--{each.on_kind}", name)
        to = ("--catalog", catalog, "--catalog-role", catalog_role)
        commands.append(_command("privileges", each.on_kind, "grant", each.privileges[0], *to, *where))
    return commands


def _narrowest(remedies: tuple[Remedy, ...]) -> list[Remedy]:
    """Of the ways to meet each need, which come from the inside out, the first."""
    found: list[Remedy] = []
    before: Remedy | None = None
    for each in remedies:
        if before is None or each.missing != before.missing or _depth(each) > _depth(before):
            found.append(each)
        before = each
    return found


def _depth(remedy: Remedy) -> int:
    return {"realm": 0, "catalog": 1, "namespace": 2}.get(remedy.on_kind, 3)


def _command(*words: str) -> str:
    """A command to be pasted into a shell: names are words in it, whatever they hold."""
    return shlex.join(("cynosure", *words))


async def _find_catalog_role(server: "Server", roles: list[str], catalog: str) -> str | None:
    """A catalog role that one of these has already, and that is not the administrators'."""
    for role in roles:
        try:
            held = await server.management.list_catalog_roles_of(role, catalog)
        except Forbidden:
            # Who asks about their own rights need not see other roles.
            return None
        for each in held:
            if each.name != "catalog_admin":
                return each.name
    return None


def _print(found: Explanation, commands: list[str]) -> None:
    print_line(f"{found.principal} {'MAY' if found.is_allowed else 'MAY NOT'} {found.operation}")
    print_line(f"  active roles: {', '.join(found.roles) or 'none'}")
    for need in found.needs:
        where = f"{need.target_kind} {need.target}".rstrip()
        print_line(f"  needs {', '.join(need.privileges) or 'no privilege'} on {where}")
    for step in found.path:
        by = f"{step.principal_role} → {step.catalog_role}" if step.catalog_role else step.principal_role
        where = f"{step.on_kind} {step.on}".rstrip()
        held = step.needed if step.held == step.needed else f"{step.needed} through {step.held}"
        print_line(f"  has {held}, granted on {where} to {by}")
    for restriction in found.restrictions:
        where = f"{restriction.on_kind} {restriction.on}".rstrip()
        print_line(f"  sees {restriction.effect} (policy {restriction.policy} on {where})")
    for missing in found.missing:
        where = f"{missing.target_kind} {missing.target}".rstrip()
        print_line(f"  lacks {missing.privilege} on {where}")
    if found.reason:
        print_line(f"  because: {found.reason}")
    if commands:
        print_line("This would allow it:")
        for command in commands:
            print_line(f"  {command}")
