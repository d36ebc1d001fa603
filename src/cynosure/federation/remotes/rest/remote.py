"""A remote that speaks Iceberg's REST protocol, behind the port of all remotes.

A maintainer must not break: each method sends one change, and answers about the one thing it was asked;
names in answers of lists that belong elsewhere are not passed on.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from cynosure.catalog.errors import (
    InvalidName,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)
from cynosure.catalog.names import Identifier, Namespace, namespace_text
from cynosure.common.errors import CynosureError
from cynosure.federation.errors import NotOffered, RemoteConflict, RemoteFileMissing
from cynosure.federation.remote import (
    UNCHANGED,
    Abilities,
    NamesPage,
    NewTable,
    RemoteTable,
    RemoteView,
    TableCommit,
    Tag,
    Unchanged,
    ViewCommit,
)
from cynosure.federation.remotes.rest import bodies
from cynosure.federation.remotes.rest.addresses import encode_name, encode_namespace, is_joinable
from cynosure.federation.remotes.rest.answers import (
    TableAnswer,
    ViewAnswer,
    find_etag,
    find_unchanged,
    is_address,
    read_table,
    read_tag,
    read_view,
)
from cynosure.federation.remotes.rest.asking import Asker
from cynosure.federation.remotes.rest.errors import NAMESPACES, Asked, unknown
from cynosure.federation.remotes.rest.paging import RemotePage, list_page
from cynosure.federation.remotes.transport import ENTRY_BYTES, LIST_BYTES, Answered
from cynosure.iceberg.views import ViewMetadata
from cynosure.storage.errors import FileMissing

L = TypeVar("L", RemoteTable, RemoteView)
_DELEGATION: Final = {"x-iceberg-access-delegation": "vended-credentials"}
_NO_NAMESPACE: Final = "NoSuchNamespaceException"
_NO_FILE: Final = "NotFoundException"
"""What Iceberg's servers say, also with 404, when a metadata file is not there."""


class _Namespaces(Struct, rename="kebab"):
    namespaces: list[tuple[str, ...]]
    next_page_token: str | None = None


class _Named(Struct, gc=False):
    # Without garbage collection, and tuples: lists of a million names take a fourth of the time.
    namespace: tuple[str, ...]
    name: str


class _Identifiers(Struct, rename="kebab"):
    identifiers: list[_Named]
    next_page_token: str | None = None


class _Properties(Struct):
    properties: dict[str, str] | None = None


class RestRemote:
    """See `RemoteCatalog`."""

    def __init__(self, asker: Asker, *, origin: str, ask_credentials: bool = False) -> None:
        """`ask_credentials`: loads and creations ask the remote for credentials to the table's files.

        A load that finds a table unchanged gives none. `origin` tells its tags from those of other remotes:
        a connection may be changed.
        """
        self._asker = asker
        self._origin = origin
        self._delegation = _DELEGATION if ask_credentials else {}

    @property
    def abilities(self) -> Abilities:
        """See `RemoteCatalog`."""
        return self._asker.known_config.to_abilities()

    async def check(self) -> None:
        """See `RemoteCatalog`."""
        await self._asker.reload_config()

    async def close(self) -> None:
        """See `RemoteCatalog`."""
        await self._asker.close()

    # --- namespaces ------------------------------------------------------------------------------

    async def list_namespaces(self, parent: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        asked = Asked(_no_namespace(parent), believed=NAMESPACES)
        config = await self._asker.load_config()
        if not is_joinable(parent, config.separator):
            raise asked.missing(_NO_NAMESPACE)
        below = [("parent", config.separator.join(parent))] if parent else []

        async def ask(paging: Sequence[tuple[str, str]]) -> RemotePage:
            query = [*below, *paging]
            answer = await self._asker.ask(asked, "GET", "namespaces", query=query, limit=LIST_BYTES)
            told = self._asker.read(answer, _Namespaces, asked)
            if any(each[:-1] != parent for each in told.namespaces):
                raise self._asker.fail("namespaces of elsewhere", asked)
            return RemotePage([each[-1] for each in told.namespaces if each], told.next_page_token)

        return await list_page(ask, token, size, partial(self._asker.fail, asked=asked))

    async def load_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        """See `RemoteCatalog`."""
        asked = Asked(_no_namespace(namespace), believed=NAMESPACES)
        path = await self._namespace(asked, namespace)
        answer = await self._asker.ask(asked, "GET", *path, limit=ENTRY_BYTES)
        return self._asker.read(answer, _Properties, asked).properties or {}

    async def create_namespace(
        self, namespace: Namespace, properties: Mapping[str, str], *, key: str | None = None
    ) -> Mapping[str, str]:
        """See `RemoteCatalog`."""
        asked = Asked(
            _no_namespace(namespace[:-1]), lambda: NamespaceExists(namespace_text(namespace)), is_change=True
        )
        if not is_joinable(namespace, (await self._asker.load_config()).separator):
            raise InvalidName(
                "A level holds what separates levels at this remote catalog",
                field="namespace",
                fix="Use another name.",
            )
        body = bodies.namespace_body(namespace, properties)
        answer = await self._asker.ask(asked, "POST", "namespaces", body=body, key=key)
        return self._asker.read(answer, _Properties, asked).properties or {}

    async def update_namespace(
        self,
        namespace: Namespace,
        *,
        removals: Sequence[str],
        updates: Mapping[str, str],
        key: str | None = None,
    ) -> None:
        """See `RemoteCatalog`."""
        asked = Asked(_no_namespace(namespace), partial(_conflict, namespace_text(namespace)), is_change=True)
        path = (*await self._namespace(asked, namespace), "properties")
        body = bodies.properties_body(removals, updates)
        await self._asker.ask(asked, "POST", *path, body=body, key=key)

    async def drop_namespace(self, namespace: Namespace, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        asked = Asked(
            _no_namespace(namespace), lambda: NamespaceNotEmpty(namespace_text(namespace)), is_change=True
        )
        await self._asker.ask(asked, "DELETE", *await self._namespace(asked, namespace), key=key)

    # --- tables ----------------------------------------------------------------------------------

    async def list_tables(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        return await self._list(namespace, "tables", token, size)

    async def load_table(self, table: Identifier, known: Tag | None = None) -> RemoteTable | Unchanged:
        """See `RemoteCatalog`."""
        asked = Asked(
            partial(_no_table, table), known_file=None if known is None else known.metadata_location
        )
        path = await self._inside(asked, table.namespace, "tables", table.name)
        answer = await self._asker.ask(
            asked,
            "GET",
            *path,
            query=[("snapshots", "all")],
            headers={**self._delegation, **self._unless(known)},
        )
        if self._is_unchanged(answer, known, asked):
            return UNCHANGED
        told = self._asker.read(answer, TableAnswer, asked)
        fail = partial(self._asker.fail, asked=asked)
        # Before the metadata is parsed, which is most of the work.
        tag = read_tag(answer, told.metadata_location, self._origin, fail)
        return find_unchanged(tag, known) or await read_table(told, tag, fail)

    async def create_table(self, wanted: NewTable, *, key: str | None = None) -> RemoteTable:
        """See `RemoteCatalog`."""
        table = wanted.table
        asked = Asked(
            _no_namespace(table.namespace),
            lambda: TableExists(str(table)),
            # A staged one changes nothing, but may reserve a place.
            is_change=True,
        )
        path = await self._inside(asked, table.namespace, "tables")
        answer = await self._asker.ask(
            asked, "POST", *path, body=bodies.creation_body(wanted), headers=self._delegation, key=key
        )
        return await self._table(answer, asked, wanted.table, is_staged=wanted.is_staged)

    async def register_table(
        self, table: Identifier, metadata_location: str, *, is_overwrite: bool, key: str | None = None
    ) -> RemoteTable:
        """See `RemoteCatalog`."""
        asked = Asked(partial(_no_file, table), lambda: TableExists(str(table)), is_change=True)
        path = await self._inside(asked, table.namespace, "register")
        body = bodies.registration_body(table.name, metadata_location, is_overwrite=is_overwrite)
        answer = await self._asker.ask(asked, "POST", *path, body=body, key=key)
        return await self._table(answer, asked, table)

    async def commit_table(self, change: TableCommit, *, key: str | None = None) -> RemoteTable:
        """See `RemoteCatalog`."""
        table = change.table
        asked = Asked(
            _no_table_or_namespace(table, table.namespace), partial(_conflict, str(table)), is_change=True
        )
        path = await self._inside(asked, table.namespace, "tables", table.name)
        answer = await self._asker.ask(asked, "POST", *path, body=bodies.commit_body(change), key=key)
        committed = await self._table(answer, asked, table)
        base = change.base
        if base is not None and base.uuid != committed.uuid:
            raise self._asker.fail("another table than the one that was changed", asked)
        return committed

    async def commit_transaction(self, changes: Sequence[TableCommit], *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        names = ", ".join(str(change.table) for change in changes)
        asked = Asked(lambda _: NoSuchTable(names), partial(_conflict, names), is_change=True)
        body = bodies.transaction_body(changes)
        await self._asker.ask(asked, "POST", "transactions", "commit", body=body, key=key)

    async def drop_table(self, table: Identifier, *, is_purge: bool, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        asked = Asked(lambda _: NoSuchTable(str(table)), partial(_conflict, str(table)), is_change=True)
        path = await self._inside(asked, table.namespace, "tables", table.name)
        query = [("purgeRequested", "true" if is_purge else "false")]
        await self._asker.ask(asked, "DELETE", *path, query=query, key=key)

    async def rename_table(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        asked = Asked(
            _no_table_or_namespace(source, target.namespace),
            lambda: TableExists(str(target)),
            is_change=True,
        )
        body = bodies.rename_body(source, target)
        await self._asker.ask(asked, "POST", "tables", "rename", body=body, key=key)

    # --- views -----------------------------------------------------------------------------------

    async def list_views(self, namespace: Namespace, *, token: str | None, size: int) -> NamesPage:
        """See `RemoteCatalog`."""
        return await self._list(namespace, "views", token, size)

    async def load_view(self, view: Identifier, known: Tag | None = None) -> RemoteView | Unchanged:
        """See `RemoteCatalog`."""
        asked = Asked(partial(_no_view, view))
        path = await self._inside(asked, view.namespace, "views", view.name)
        answer = await self._asker.ask(asked, "GET", *path, headers=self._unless(known))
        if self._is_unchanged(answer, known, asked):
            return UNCHANGED
        told = self._asker.read(answer, ViewAnswer, asked)
        fail = partial(self._asker.fail, asked=asked)
        tag = read_tag(answer, told.metadata_location, self._origin, fail)
        return find_unchanged(tag, known) or await read_view(told, tag, fail)

    async def create_view(
        self, view: Identifier, metadata: ViewMetadata, *, key: str | None = None
    ) -> RemoteView:
        """See `RemoteCatalog`."""
        asked = Asked(_no_namespace(view.namespace), lambda: ViewExists(str(view)), is_change=True)
        path = await self._inside(asked, view.namespace, "views")
        body = bodies.view_body(view.name, metadata)
        return await self._view(await self._asker.ask(asked, "POST", *path, body=body, key=key), asked, view)

    async def register_view(
        self, view: Identifier, metadata_location: str, *, key: str | None = None
    ) -> RemoteView:
        """See `RemoteCatalog`."""
        # Here too: what a remote can do is not known before it was asked something.
        if not (await self._asker.load_config()).registers_views:
            raise NotOffered(self._asker.name, operation="register-view", fix="Create the view from its SQL.")
        asked = Asked(partial(_no_file, view), lambda: ViewExists(str(view)), is_change=True)
        path = await self._inside(asked, view.namespace, "register-view")
        body = bodies.registration_body(view.name, metadata_location)
        return await self._view(await self._asker.ask(asked, "POST", *path, body=body, key=key), asked, view)

    async def commit_view(self, change: ViewCommit, *, key: str | None = None) -> RemoteView:
        """See `RemoteCatalog`."""
        view = change.view
        asked = Asked(lambda _: NoSuchView(str(view)), partial(_conflict, str(view)), is_change=True)
        path = await self._inside(asked, view.namespace, "views", view.name)
        body = bodies.view_commit_body(view, change.requirements, change.updates)
        answer = await self._asker.ask(asked, "POST", *path, body=body, key=key)
        committed = await self._view(answer, asked, view)
        base = change.base
        if base is not None and base.uuid != committed.uuid:
            raise self._asker.fail("another view than the one that was changed", asked)
        return committed

    async def drop_view(self, view: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""
        asked = Asked(lambda _: NoSuchView(str(view)), partial(_conflict, str(view)), is_change=True)
        path = await self._inside(asked, view.namespace, "views", view.name)
        await self._asker.ask(asked, "DELETE", *path, key=key)

    async def rename_view(self, source: Identifier, target: Identifier, *, key: str | None = None) -> None:
        """See `RemoteCatalog`."""

        def missing(kind: str) -> CynosureError:
            if kind == _NO_NAMESPACE:
                return NoSuchNamespace(namespace_text(target.namespace))
            return NoSuchView(str(source))

        asked = Asked(missing, lambda: ViewExists(str(target)), is_change=True)
        body = bodies.rename_body(source, target)
        await self._asker.ask(asked, "POST", "views", "rename", body=body, key=key)

    # --- within ----------------------------------------------------------------------------------

    async def _namespace(self, asked: Asked, namespace: Namespace) -> tuple[str, str]:
        separator = (await self._asker.load_config()).separator
        if not is_joinable(namespace, separator):
            raise asked.missing(_NO_NAMESPACE)
        return "namespaces", encode_namespace(namespace, separator)

    async def _inside(self, asked: Asked, namespace: Namespace, kind: str, *name: str) -> tuple[str, ...]:
        return (*await self._namespace(asked, namespace), kind, *map(encode_name, name))

    async def _list(self, namespace: Namespace, kind: str, token: str | None, size: int) -> NamesPage:
        asked = Asked(_no_namespace(namespace), believed=NAMESPACES)
        path = await self._inside(asked, namespace, kind)

        async def ask(paging: Sequence[tuple[str, str]]) -> RemotePage:
            answer = await self._asker.ask(asked, "GET", *path, query=paging, limit=LIST_BYTES)
            told = self._asker.read(answer, _Identifiers, asked)
            if any(each.namespace != namespace for each in told.identifiers):
                raise self._asker.fail("names of another namespace", asked)
            return RemotePage([each.name for each in told.identifiers], told.next_page_token)

        return await list_page(ask, token, size, partial(self._asker.fail, asked=asked))

    async def _table(
        self, answer: Answered, asked: Asked, table: Identifier, *, is_staged: bool = False
    ) -> RemoteTable:
        """The table that a change made, or made another."""
        told, fail = self._asker.read(answer, TableAnswer, asked), partial(self._asker.fail, asked=asked)
        if is_address(told.metadata_location) and not is_staged:
            return await self._look_at(self.load_table(table))
        # One that is only staged has no file yet.
        tag = Tag() if is_staged else read_tag(answer, told.metadata_location, self._origin, fail)
        return await read_table(told, tag, fail)

    async def _view(self, answer: Answered, asked: Asked, view: Identifier) -> RemoteView:
        told, fail = self._asker.read(answer, ViewAnswer, asked), partial(self._asker.fail, asked=asked)
        if is_address(told.metadata_location):
            return await self._look_at(self.load_view(view))
        return await read_view(told, read_tag(answer, told.metadata_location, self._origin, fail), fail)

    async def _look_at(self, loading: Awaitable[L | Unchanged]) -> L:
        """What came of a change whose answer does not name the file: Nessie's has an address of its own."""
        try:
            found = await loading
        except CynosureError as error:
            raise unknown(self._asker.name, "what came of it cannot be loaded") from error
        if isinstance(found, Unchanged):
            raise unknown(self._asker.name, "it was not loaded")
        return found

    def _is_unchanged(self, answer: Answered, known: Tag | None, asked: Asked) -> bool:
        if answer.status == 304 and find_etag(known, self._origin) is None:
            raise self._asker.fail("unchanged, though nobody asked", asked)
        return answer.status == 304

    def _unless(self, known: Tag | None) -> dict[str, str]:
        etag = find_etag(known, self._origin)
        return {} if etag is None else {"if-none-match": etag}


def _no_table(table: Identifier, kind: str) -> CynosureError:
    if kind == _NO_FILE:
        # The table is there: who took it for gone would take its grants with it.
        return RemoteFileMissing(str(table))
    return NoSuchTable(str(table))


def _no_view(view: Identifier, kind: str) -> CynosureError:
    if kind == _NO_FILE:
        return FileMissing("The metadata file of the remote's view is missing", view=str(view))
    return NoSuchView(str(view))


def _no_file(registered: Identifier, kind: str) -> CynosureError:
    if kind == _NO_FILE:
        return FileMissing("The remote does not find the metadata file", name=str(registered))
    return NoSuchNamespace(namespace_text(registered.namespace))


def _no_namespace(namespace: Namespace) -> Callable[[str], CynosureError]:
    return lambda _: NoSuchNamespace(namespace_text(namespace))


def _no_table_or_namespace(table: Identifier, namespace: Namespace) -> Callable[[str], CynosureError]:
    def missing(kind: str) -> CynosureError:
        return (
            NoSuchNamespace(namespace_text(namespace)) if kind == _NO_NAMESPACE else NoSuchTable(str(table))
        )

    return missing


def _conflict(name: str) -> CynosureError:
    return RemoteConflict(
        "The remote catalog has another version by now, or a requirement does not hold there",
        fix="Load it again, and make the change to what it is now.",
        name=name,
    )
