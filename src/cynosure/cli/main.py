"""The `cynosure` command: its groups, and how every call ends.

Exit codes: 0 done, 1 an error (one readable block on standard error), 2 wrong usage, 130 ctrl-C.

A maintainer must not break: no traceback reaches a user who did not ask for it with `--debug`.
"""

import sys
from typing import Annotated

import typer

from cynosure import __version__
from cynosure.cli import catalogs, certs, operator, serve, settings, store, table_files, tables
from cynosure.cli.output import print_error, tell
from cynosure.common.errors import CynosureError

_RUN = "Run"
_OPERATE = "Operate"
_SET_UP = "Set up"

app = typer.Typer(
    name="cynosure",
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


app.command("up", rich_help_panel=_RUN)(serve.up)
app.add_typer(serve.app, name="serve", rich_help_panel=_RUN)
app.command("status", rich_help_panel=_OPERATE)(operator.status)
app.add_typer(catalogs.app, name="catalogs", rich_help_panel=_OPERATE)
tables.app.command("export")(table_files.export)
tables.app.command("sweep")(table_files.sweep)
app.add_typer(tables.app, name="tables", rich_help_panel=_OPERATE)
app.add_typer(store.app, name="store", rich_help_panel=_OPERATE)
app.add_typer(settings.app, name="settings", rich_help_panel=_SET_UP)
app.add_typer(certs.app, name="certs", rich_help_panel=_SET_UP)


def run() -> None:
    """Entry point of the `cynosure` command."""
    is_debug = "--debug" in sys.argv[1:]
    try:
        app()
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
