"""`cynosure sql`: SQL over the tables of a catalog, as somebody may see them.

A maintainer must not break: exit codes are 0, 1 when a statement failed, 2 for wrong usage, 130 for ctrl-C,
which ends the statement at the gateway too; a statement that fails keeps those behind it from being sent.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cynosure.cli.remote import Remote, connected
from cynosure.common.errors import BadInput, CynosureError

if TYPE_CHECKING:
    from cynosure.cli.sql_repl.connecting import Connection
    from cynosure.cli.sql_repl.splitting import Placed
    from cynosure.client.query import QuerySession

_OUTPUT = "Output"


@connected
def sql(
    to: Remote,
    commands: Annotated[
        list[str] | None,
        typer.Option("-c", "--command", metavar="SQL", help="Run this, and end; may be repeated."),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("-f", "--file", metavar="FILE", help="Run the statements of a file; - reads stdin."),
    ] = None,
    gateway: Annotated[
        str | None,
        typer.Option(
            "--gateway",
            metavar="URL",
            help="Where SQL goes. Default: $CYNOSURE_GATEWAY, the profile's, else port 8184 of the server.",
            rich_help_panel="Connection",
        ),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog", metavar="NAME", help="For names without a catalog. Default: the only one there is."
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", metavar="A.B", help="For names without a namespace."),
    ] = None,
    params: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="NAME=VALUE", help="Value of :NAME, JSON or else text; may be repeated."
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="End a statement after so long: 30s, 5m."),
    ] = None,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="table, vertical, csv, tsv, json, jsonl, markdown or arrow.",
            rich_help_panel=_OUTPUT,
        ),
    ] = "table",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write rows there.", rich_help_panel=_OUTPUT),
    ] = None,
    max_rows: Annotated[
        int,
        typer.Option("--max-rows", min=0, help="Most rows of a table; 0 shows all.", rich_help_panel=_OUTPUT),
    ] = 1_000,
    is_timed: Annotated[
        bool, typer.Option("--timing", help="Say how long it took, and where.", rich_help_panel=_OUTPUT)
    ] = False,
) -> None:
    """Run SQL, in Spark's dialect, over the tables of a catalog; what policies hide from you is not there.

    Without -c and -f: a prompt where stdin is a terminal, else the statements of stdin. Needs a gateway
    (`cynosure up` starts one, or `cynosure serve gateway`).

    Example: `cynosure sql -c 'SELECT count(*) FROM shop.orders' --catalog main --format csv`
    """
    import asyncio

    from cynosure.cli.sql_repl.writers import check_format
    from cynosure.client.query import QuerySession

    wanted = check_format("json" if to.as_json else format_)
    session = QuerySession(
        catalog=catalog or "",
        namespace=tuple(_split_namespace(namespace)),
        parameters=_read_parameters(params or []),
        timeout=_check_timeout(timeout),
    )
    texts = _read_texts(commands or [], files or [])
    if texts is None and output is None and not to.as_json:
        asyncio.run(_run_prompt(to, gateway, session, wanted, max_rows, is_timed=is_timed))
        return
    texts = [("stdin", sys.stdin.read())] if texts is None else texts
    is_good = asyncio.run(
        _run_texts(to, gateway, session, texts, wanted, output, max_rows, is_timed=is_timed)
    )
    if not is_good:
        raise typer.Exit(1)


async def _run_prompt(
    to: Remote, gateway: str | None, session: "QuerySession", format_: str, max_rows: int, *, is_timed: bool
) -> None:
    from cynosure.cli.sql_repl.connecting import open_connection
    from cynosure.cli.sql_repl.repl import Repl

    async with open_connection(to, gateway) as connection:
        session = await _with_catalog(connection, session)
        await Repl(connection, session, format_=format_, max_rows=max_rows, is_timed=is_timed).run()


async def _run_texts(
    to: Remote,
    gateway: str | None,
    session: "QuerySession",
    texts: list[tuple[str, str]],
    format_: str,
    output: Path | None,
    max_rows: int,
    *,
    is_timed: bool,
) -> bool:
    from cynosure.cli.sql_repl.connecting import open_connection
    from cynosure.cli.sql_repl.errors import show_statement_error
    from cynosure.cli.sql_repl.parameters import choose_parameters, names_in
    from cynosure.cli.sql_repl.running import is_text, run_statement, summarise, watching
    from cynosure.cli.sql_repl.using import apply_use
    from cynosure.cli.sql_repl.writers import open_output

    statements = _list_statements(texts)
    named = names_in(each.text for _, each in statements)
    is_for_people = format_ in ("table", "vertical") and output is None
    async with open_connection(to, gateway) as connection:
        session = await _with_catalog(connection, session)
        with open_output(output, sys.stdout) as file:
            for source, (statement, line, column) in statements:
                if (used := apply_use(statement, session)) is not None:
                    session = used
                    continue
                try:
                    with watching() as watch:
                        outcome = await run_statement(
                            connection.query,
                            statement,
                            choose_parameters(session, statement, named),
                            format_=format_,
                            to=file,
                            max_rows=max_rows,
                            watch=watch,
                            is_watched=sys.stderr.isatty(),
                        )
                except CynosureError as error:
                    show_statement_error(error, statement, source=source, line=line, column=column)
                    return False
                if (is_for_people and not is_text(statement)) or is_timed or outcome.is_cut:
                    summarise(outcome, is_timed=is_timed)
    return True


async def _with_catalog(connection: "Connection", session: "QuerySession") -> "QuerySession":
    """The session in the only catalog there is, where none is named."""
    from msgspec import structs

    if session.catalog:
        return session
    names = await connection.list_catalogs()
    return structs.replace(session, catalog=names[0]) if len(names) == 1 else session


def _list_statements(texts: list[tuple[str, str]]) -> list[tuple[str, "Placed"]]:
    """With the name of the file that each is from; empty for those of a flag."""
    from cynosure.cli.sql_repl.splitting import place_statements

    statements = [(name, each) for name, text in texts for each in place_statements(text)]
    if not statements:
        raise BadInput("There is no statement", field="--command", fix="Give one with -c, -f or on stdin.")
    return statements


def _read_texts(commands: list[str], files: list[str]) -> list[tuple[str, str]] | None:
    """What to run; `None` when that is to be asked for."""
    texts = [("", command) for command in commands]
    for name in files:
        if name == "-":
            texts.append(("stdin", sys.stdin.read()))
            continue
        try:
            texts.append((name, Path(name).read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(
                "The file cannot be read",
                field="--file",
                fix="Name a file of UTF-8 text that you can read, or - for stdin.",
                path=name,
            ) from error
    if texts or sys.stdin.isatty():
        return texts or None
    return [("stdin", sys.stdin.read())]


def _read_parameters(given: list[str]) -> dict[str, Any] | list[Any]:
    import msgspec

    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals or not name.isidentifier():
            raise BadInput("Not a parameter", field="--param", fix="Write NAME=VALUE.", given=each[:40])
        try:
            found[name] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            found[name] = text
    return found or []


def _split_namespace(text: str | None) -> list[str]:
    parts = text.split(".") if text else []
    if not all(parts):
        raise BadInput("Not a namespace", field="--namespace", fix="Write its names with dots between them.")
    return parts


def _check_timeout(text: str | None) -> str | None:
    from cynosure.common.quantities import parse_duration

    if text is None:
        return None
    try:
        is_good = parse_duration(text).total_seconds() > 0.0
    except ValueError:
        is_good = False
    if not is_good:
        raise BadInput("Not a duration", field="--timeout", fix="Write 30s, 2m or PT2M.")
    return text
