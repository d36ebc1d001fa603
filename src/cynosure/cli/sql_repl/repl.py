r"""The prompt of `cynosure sql`.

    statements end with ;            USE catalog.namespace
    \q  leave     \?  help           \timing     \format NAME

A maintainer must not break: ctrl-C ends a statement that runs, at the gateway too, and never the prompt; what
was typed is kept in a file that only its owner can read.
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from cynosure.cli.output import print_error, tell
from cynosure.cli.sql_repl.completing import SqlCompleter
from cynosure.cli.sql_repl.connecting import Connection
from cynosure.cli.sql_repl.errors import show_statement_error
from cynosure.cli.sql_repl.parameters import choose_parameters
from cynosure.cli.sql_repl.running import is_text, run_statement, summarise, watching
from cynosure.cli.sql_repl.splitting import split_statements
from cynosure.cli.sql_repl.using import apply_use
from cynosure.cli.sql_repl.writers import FORMATS, check_format
from cynosure.client.query import QuerySession
from cynosure.common.errors import CynosureError

_HELP: Final = rf"""Statements end with a semicolon and may have several lines. Ctrl-C ends the one that runs.
  USE catalog.namespace    names are relative to it from now on
  EXPLAIN SELECT …         where it would run, why, and which policies apply
  SHOW TABLES IN n         what there is; also SHOW NAMESPACES, DESCRIBE t, SHOW CREATE TABLE t
  \format NAME             {", ".join(FORMATS)}
  \timing                  say how long statements take, and where they ran
  \q                       leave (also ctrl-D)"""


class Repl:
    """A prompt on one gateway."""

    def __init__(
        self, connection: Connection, session: QuerySession, *, format_: str, max_rows: int, is_timed: bool
    ) -> None:
        self._connection = connection
        self._session = session
        self._format = format_
        self._max_rows = max_rows
        self._is_timed = is_timed
        # At a prompt nobody knows what comes: only what a statement names goes with it.
        self._named = frozenset(session.parameters) if isinstance(session.parameters, dict) else frozenset()
        self._completer = SqlCompleter(connection, lambda: self._session)

    async def run(self) -> None:
        """Ask, run, show; until ctrl-D or \\q."""
        from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

        prompt: PromptSession[str] = PromptSession(
            history=FileHistory(str(history_file())),
            completer=self._completer,
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation=lambda width, number, is_soft: "." * (width - 1) + " ",
        )
        prefetching = asyncio.create_task(self._completer.prefetch())
        try:
            await self._ask(prompt)
        finally:
            prefetching.cancel()

    async def _ask(self, prompt: "PromptSession[str]") -> None:
        tell(f"SQL at {self._connection.gateway_url}. End statements with ; and see \\? for help.")
        while True:
            try:
                text = await prompt.prompt_async(self._prompt())
            except EOFError:
                return
            except KeyboardInterrupt:
                continue
            if not await self._handle(text.strip()):
                return

    def _prompt(self) -> str:
        where = (
            ".".join([self._session.catalog, *self._session.namespace]) if self._session.catalog else "sql"
        )
        return f"{where}> "

    async def _handle(self, text: str) -> bool:
        """False: leave."""
        if text.startswith("\\"):
            return self._command(text)
        word = text.removesuffix(";").lower()
        if word in ("quit", "exit"):
            return False
        if word == "help":
            tell(_HELP)
            return True
        statements, rest = split_statements(text)
        for statement in [*statements, *([rest] if rest else [])]:
            if not await self._run(statement):
                break
        return True

    def _command(self, text: str) -> bool:
        name, _, argument = text.rstrip(";").partition(" ")
        if name in ("\\q", "\\quit"):
            return False
        if name == "\\timing":
            self._is_timed = not self._is_timed
            tell(f"Timing is {'on' if self._is_timed else 'off'}.")
        elif name == "\\format":
            try:
                self._format = check_format(argument.strip(), field="\\format")
            except CynosureError as error:
                print_error(error)
        elif name in ("\\?", "\\h", "\\help"):
            tell(_HELP)
        else:
            tell("There is no such command; see \\?")
        return True

    async def _run(self, statement: str) -> bool:
        if (used := apply_use(statement, self._session)) is not None:
            self._session = used
            self._completer.forget()
            return True
        task = asyncio.create_task(self._show(statement))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            tell("Canceled.")
            return False
        except CynosureError as error:
            show_statement_error(error, statement)
            return False
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        return True

    async def _show(self, statement: str) -> None:
        with watching() as watch:
            outcome = await run_statement(
                self._connection.query,
                statement,
                choose_parameters(self._session, statement, self._named),
                format_=self._format,
                to=sys.stdout,
                max_rows=self._max_rows,
                watch=watch,
                is_watched=True,
            )
        if self._is_timed or not is_text(statement):
            summarise(outcome, is_timed=self._is_timed)


def history_file() -> Path:
    """Where the user's statements are kept, of mode 0600."""
    home = os.environ.get("XDG_STATE_HOME")
    path = (Path(home) if home else Path.home() / ".local" / "state") / "cynosure" / "sql_history"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    path.chmod(0o600)
    return path


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def enter(event: KeyPressEvent) -> None:
        # A new line, until what was typed is complete.
        text = event.current_buffer.text
        stripped = text.strip()
        is_whole = not stripped or stripped.startswith("\\") or stripped.lower() in ("quit", "exit", "help")
        if is_whole or (split_statements(text).statements and not split_statements(text).rest):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    return bindings
