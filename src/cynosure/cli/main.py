"""The `cynosure` command: its groups, and how every call ends.

Exit codes: 0 done, 1 an error (one readable block on standard error), 2 wrong usage, 130 ctrl-C.

A maintainer must not break: no traceback reaches a user who did not ask for it with `--debug`.
"""

import sys
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

import typer
from typer.main import get_command

from cynosure import __version__
from cynosure.cli import access, migrate, operator, serve, sql
from cynosure.cli.lazy import LazyGroup, add_lazily
from cynosure.cli.output import print_error, tell
from cynosure.common.errors import CynosureError

if TYPE_CHECKING:
    from typer._click import Command

_RUN: Final = "Run"
_DATA: Final = "Data"
_ACCESS: Final = "Who may do what"
_OPERATE: Final = "Operate"
_SET_UP: Final = "Set up"

app = typer.Typer(
    name="cynosure",
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "**First steps**\n\n"
        "`cynosure up --data ./data` runs everything on this machine\n\n"
        "`cynosure status --data ./data` shows how it is\n\n"
        "`cynosure catalogs create NAME --data ./data` makes room for tables\n\n"
        "`cynosure principals create NAME --data ./data` makes credentials for somebody\n\n"
        "`cynosure sql --data ./data` asks for SQL and runs it\n\n"
        "`cynosure setup apply FILE --data ./data` does all of that from a file\n\n"
        "`cynosure settings reference` lists everything that can be set"
    ),
)


def _print_version(value: bool) -> None:
    if value:
        print(f"cynosure {__version__}")
        raise typer.Exit


@app.callback()
def cynosure(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """A lakehouse control plane for Apache Iceberg."""


GROUPS: Final = (
    (_RUN, "serve", "serve", "Run one service in the foreground."),
    (_DATA, "catalogs", "catalogs", "Catalogs: create, look at, change, delete."),
    (_DATA, "namespaces", "namespaces", "Namespaces of a catalog."),
    (_DATA, "tables", "tables", "Tables: list, drop, import many, restore dropped ones."),
    (_DATA, "views", "views", "Views: list, look at, drop."),
    (_DATA, "generic-tables", "generic_tables", "Tables of other formats: create, list, look at, drop."),
    (_ACCESS, "principals", "principals", "People and services, and their credentials."),
    (_ACCESS, "principal-roles", "principal_roles", "Roles that principals have."),
    (_ACCESS, "catalog-roles", "catalog_roles", "Roles inside a catalog, which privileges are granted to."),
    (_ACCESS, "privileges", "privileges", "Grant and revoke privileges."),
    (_ACCESS, "policies", "policies", "Policies: maintenance of tables, row filters, column masks."),
    (_ACCESS, "realms", "realms", "Realms: whole installations beside each other on one server."),
    (_ACCESS, "tokens", "tokens", "Keys that sign tokens."),
    (_ACCESS, "events", "events", "What was done, and what was refused."),
    (
        _OPERATE,
        "maintenance",
        "maintenance",
        "Maintenance of tables: what would run, what was run, run it now.",
    ),
    (_OPERATE, "federation", "federation", "Remotes of federated catalogs: how they are, what is different."),
    (_OPERATE, "tasks", "tasks", "Long work: how far it is; try it again, give it up."),
    (_OPERATE, "store", "store", "Look after the store: history, restore, garbage collection."),
    (_SET_UP, "setup", "setup.commands", "Principals, roles, catalogs, policies and grants from a file."),
    (_SET_UP, "profiles", "profiles", "Servers that you speak to by name."),
    (_SET_UP, "delegation", "delegation", "A principal for a delegation service."),
    (_SET_UP, "gateway", "gateway", "A principal for a gateway for SQL."),
    (_SET_UP, "settings", "settings", "Show the settings in force, and all there are."),
    (_SET_UP, "certs", "certs", "Make and show TLS certificates, for tests and small installations."),
)
"""Panel, name, module in this room, what the list says."""

app.command("up", rich_help_panel=_RUN)(serve.up)
app.command("sql", rich_help_panel=_DATA)(sql.sql)
for _panel, _name, _module, _summary in GROUPS:
    add_lazily(app, _name, f"cynosure.cli.{_module}", panel=_panel, summary=_summary)
app.command("explain", rich_help_panel=_ACCESS)(access.explain)
app.command("whoami", rich_help_panel=_ACCESS)(access.whoami)
app.command("status", rich_help_panel=_OPERATE)(operator.status)
app.command("migrate", rich_help_panel=_OPERATE)(migrate.migrate)


@cache
def _make_command() -> "Command":
    return get_command(app)


def run() -> None:
    """Entry point of the `cynosure` command."""
    is_debug = "--debug" in sys.argv[1:]
    try:
        # By its own name also when another program runs it.
        _make_command()(prog_name="cynosure")
    except CynosureError as error:
        if is_debug:
            raise
        print_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        tell("Interrupted.")
        sys.exit(130)
    except Exception as error:
        if is_debug:
            raise
        tell(f"Error: {type(error).__name__}: {error}")
        tell("Fix: This is a defect of Cynosure. Run again with --debug and report what it prints.")
        sys.exit(1)
