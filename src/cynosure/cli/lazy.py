"""Groups of commands that are imported when they are used.

Must not break: `cynosure GROUP …` imports the module of that group and no other; the list of all groups
imports none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

if TYPE_CHECKING:
    from typer._click import Command, Context

_MODULES: Final[dict[str, str]] = {}


class LazyGroup(TyperGroup):
    """A group whose groups are empty until one of them is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._imported: set[str] = set()

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        """The command that the first of these words names."""
        name = args[0] if args else ""
        if name in _MODULES and name not in self._imported:
            group = get_group(import_module(_MODULES[name]).app)
            group.name = name
            self.commands[name] = group
            self._imported.add(name)
        return super().resolve_command(ctx, args)


def add_lazily(app: typer.Typer, name: str, module: str, *, panel: str, summary: str) -> None:
    """Add the group that is `app` of a module; `summary` is what the list of groups says about it."""
    _MODULES[name] = module
    app.add_typer(typer.Typer(help=summary), name=name, rich_help_panel=panel)
