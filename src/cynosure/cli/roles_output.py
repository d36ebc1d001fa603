"""How roles are shown: one shape for principal roles and catalog roles."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cynosure.cli.names import format_properties, format_time
from cynosure.cli.output import print_fields, print_json, print_table

if TYPE_CHECKING:
    from cynosure.client.management_types import Entity


def print_roles(title: str, roles: "Sequence[Entity]", as_json: bool) -> None:
    """A list of roles."""
    if as_json:
        print_json(roles)
        return
    print_table(
        (title, "CREATED", "PROPERTIES"),
        [
            (each.name, format_time(each.create_timestamp), format_properties(each.properties))
            for each in roles
        ],
    )


def print_role(title: str, role: "Entity", assignees: Sequence[str], as_json: bool) -> None:
    """One role and who has it."""
    if as_json:
        import msgspec

        print_json({**msgspec.to_builtins(role), "assignees": assignees})
        return
    print_fields(
        {
            title: role.name,
            "assigned to": ", ".join(assignees) or "nobody",
            **{f"  {key}": value for key, value in role.properties.items()},
            "version": role.entity_version,
            "created": format_time(role.create_timestamp),
            "updated": format_time(role.last_update_timestamp),
        }
    )


def print_done(text: str, value: object, as_json: bool) -> None:
    """What was done, for people or for programs."""
    if as_json:
        print_json(value)
    else:
        print(text)
