"""What the prompt proposes: keywords, functions, and names of the catalog, asked for when they are needed.

A maintainer must not break: proposals come from answers to the user's own requests; a refusal or a failure
is no proposal, and never an error at the prompt.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from cynosure.cli.sql_repl.connecting import Connection
from cynosure.client.query import Page, QuerySession
from cynosure.common.errors import CynosureError

BEGINNINGS: Final = (
    *("SELECT", "WITH", "VALUES", "EXPLAIN", "EXPLAIN EXTENDED", "DESCRIBE", "DESCRIBE EXTENDED", "USE"),
    *("SHOW CATALOGS", "SHOW NAMESPACES", "SHOW TABLES", "SHOW TABLES IN", "SHOW VIEWS", "SHOW COLUMNS IN"),
    *("SHOW FUNCTIONS", "SHOW CREATE TABLE", "SHOW TBLPROPERTIES", "SHOW CURRENT NAMESPACE"),
)
"""Words that a statement begins with."""
KEYWORDS: Final = (
    *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "OFFSET", "DISTINCT", "AS"),
    *("WITH", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "ON", "USING", "LATERAL"),
    *("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "AND", "OR", "NOT", "IN", "EXISTS", "BETWEEN", "LIKE"),
    *("RLIKE", "IS NULL", "IS NOT NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "TRY_CAST", "OVER"),
    *("PARTITION BY", "WINDOW", "PIVOT", "VALUES", "TIMESTAMP AS OF", "VERSION AS OF", "NULL", "TRUE"),
    *("FALSE", "DATE", "TIMESTAMP", "INTERVAL", "ASC", "DESC", "NULLS FIRST", "NULLS LAST"),
)
"""Words inside of one."""
_WORD: Final = re.compile(r"[A-Za-z0-9_.`]*\Z")
_BEHIND: Final = r"\b(?:from|join|table|tblproperties|describe|extended|in|use)\s+"
_TABLES: Final = re.compile(
    rf"{_BEHIND}((?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)(?:\s+(?:as\s+)?(\w+))?", re.IGNORECASE
)
"""A table, and the name that is given to it, which may be a keyword of another clause."""
_AFTER: Final = re.compile(rf"{_BEHIND}[A-Za-z0-9_.`]*\Z", re.IGNORECASE)
_PLAIN_WORDS: Final = re.compile(r"[A-Za-z ]*")
_RUNTIME: Final = ("system.runtime.queries", "system.runtime.tasks", "system.runtime.workers")
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_NAMES: Final = 5_000


class SqlCompleter(Completer):
    """Proposals for the word before the cursor."""

    def __init__(self, connection: Connection, session: Callable[[], QuerySession]) -> None:
        self._connection = connection
        self._session = session
        self._known: dict[str, list[str]] = {}
        self._functions: list[str] = []

    async def prefetch(self) -> None:
        """Ask for the names of functions, so that nobody at the prompt waits for them."""
        self._functions = await self._cached("functions", lambda: self._ask("SHOW FUNCTIONS", QuerySession()))

    async def _ask(self, sql: str, session: QuerySession) -> list[str]:
        """The first column of the first page of an answer."""
        asking = QuerySession(catalog=session.catalog, namespace=session.namespace)
        sent = await self._connection.query.submit(sql, asking, wait_s=5.0)
        page = await self._connection.query.fetch(sent.results, wait_s=5.0)
        return [str(row[0]) for row in page.rows] if isinstance(page, Page) else []

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Without asking anybody."""
        yield from _propose(_word(document), (*BEGINNINGS, *KEYWORDS))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """What begins as the word does."""
        word, before = _word(document), document.text_before_cursor
        begun = before.rpartition(";")[2].lstrip()
        beginnings = list(_propose(begun, BEGINNINGS)) if _PLAIN_WORDS.fullmatch(begun) else []
        if beginnings:
            for found in beginnings:
                yield found
        elif _AFTER.search(before):
            for found in _propose(word, (*await self._names(word), *_RUNTIME)):
                yield found
        elif "." in word:
            for found in _propose(word, await self._columns_behind(word, document.text)):
                yield found
        elif word:
            for table, _ in dict.fromkeys(_TABLES.findall(document.text)):
                for found in _propose(word, await self._columns(table)):
                    yield found
            for found in _propose(word, KEYWORDS):
                yield found
            for found in _propose(word, self._functions, after="("):
                yield found

    async def _columns_behind(self, word: str, text: str) -> list[str]:
        """Columns of the table that is called so before the dot: by its name, or by an alias."""
        named = _parts(word)[:-1]
        for table, alias in _TABLES.findall(text):
            if named in ([alias], _parts(table), _parts(table)[-1:]):
                return [_join([*named, each]) for each in await self._columns(table)]
        return []

    async def _names(self, word: str) -> list[str]:
        """Whole names that may begin as this word does, level by level."""
        session = self._session()
        *above, _ = _parts(word)
        names: list[str] = []
        if not above:
            names += await self._cached("", self._connection.list_catalogs)
        if session.catalog:
            names += [_join(each) for each in await self._below(session.catalog, tuple(above), above)]
            if not above and session.namespace:
                names += [_join(each) for each in await self._below(session.catalog, session.namespace, [])]
        if above:
            names += [_join(each) for each in await self._below(above[0], tuple(above[1:]), above)]
        return names

    async def _below(self, catalog: str, namespace: tuple[str, ...], prefix: list[str]) -> list[list[str]]:
        async def ask() -> list[str]:
            api = self._connection.catalog(catalog)
            spaces = [each[-1] for each in await api.list_namespaces(namespace)]
            tables = [each.name for each in await api.list_tables(namespace)] if namespace else []
            views = [each.name for each in await api.list_views(namespace)] if namespace else []
            return [*spaces, *tables, *views][:_MAX_NAMES]

        found = await self._cached(f"below {catalog} {namespace}", ask)
        return [[*prefix, each] for each in found]

    async def _columns(self, table: str) -> list[str]:
        session = self._session()
        parts = _parts(table)

        async def ask() -> list[str]:
            tries = [
                (session.catalog, (*session.namespace, *parts[:-1])),
                (session.catalog, tuple(parts[:-1])),
                (parts[0], tuple(parts[1:-1])),
            ]
            for catalog, namespace in tries:
                if not catalog or not namespace:
                    continue
                try:
                    loaded = await self._connection.catalog(catalog).load_table(namespace, parts[-1])
                except CynosureError:
                    continue
                metadata = loaded["metadata"]
                current = metadata.get("current-schema-id", 0)
                for schema in metadata.get("schemas", ()):
                    if schema.get("schema-id", 0) == current:
                        return [field["name"] for field in schema["fields"]]
            # A view, a metadata table, or a table whose metadata is not told to this user: the gateway knows.
            return await self._ask(f"SHOW COLUMNS IN {_join(parts)}", session)

        return await self._cached(f"columns {session.catalog} {session.namespace} {table}", ask)

    async def _cached(self, key: str, ask: Callable[[], Awaitable[list[str]]]) -> list[str]:
        known = self._known
        if key not in known:
            try:
                async with asyncio.timeout(5.0):
                    known[key] = await ask()
            except (CynosureError, TimeoutError, LookupError):
                known[key] = []
        # Whoever types on meanwhile breaks it off: then nothing is kept, and it is asked again.
        return known[key]

    def forget(self) -> None:
        """Ask again: something may be new."""
        self._known = {}


def _word(document: Document) -> str:
    found = _WORD.search(document.text_before_cursor)
    return found[0] if found else ""


def _parts(word: str) -> list[str]:
    return [each.strip("`") for each in word.split(".")]


def _join(parts: list[str]) -> str:
    return ".".join(each if _PLAIN.fullmatch(each) else f"`{each.replace('`', '``')}`" for each in parts)


def _propose(word: str, names: Iterable[str], after: str = "") -> Iterable[Completion]:
    lower = word.lower().replace("`", "")
    for name in names:
        if name.lower().replace("`", "").startswith(lower) and name != word:
            yield Completion(name + after, start_position=-len(word), display=name)
