"""`cynosure tables delete|dropped|restore`: tables that go, with their files or without, and come back."""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.names import OfCatalog, OfNamespace, Separator, format_time, split_name
from cynosure.cli.output import print_json, print_table, tell
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done
from cynosure.common.errors import BadInput, Forbidden, NotFound, OutcomeUnknown

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.client.drops import DropApi, Dropped, Restored

Catalog = Annotated[str, typer.Argument(metavar="CATALOG", help="Name of the catalog.")]


@changing
def delete(
    to: Remote,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table.")],
    catalog: OfCatalog,
    namespace: OfNamespace,
    separator: Separator = ".",
    purge: Annotated[bool, typer.Option("--purge", help="Delete its files as well, for good.")] = False,
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait", help="With --purge: do not ask again when the server says that it takes longer."
        ),
    ] = False,
) -> None:
    """Drop a table; its files stay, and `cynosure tables restore` brings it back for a while.

    With `--purge` its files are deleted too. How long the server waits for that before it answers is for its
    settings to say (`delegation.mode`, `delegation.sync_timeout`); the work goes on in any case, and
    `cynosure tasks watch` shows how far it is.

    Example: `cynosure tables delete orders --catalog lake --namespace sales --purge`
    """
    if no_wait and not purge:
        raise BadInput("Only a purge is waited for", field="--no-wait", fix="Add --purge, or leave it out.")
    levels = split_name(namespace, separator)

    async def work(server: "Server") -> bool:
        """Whether the server said that it is all done."""
        api = server.catalog(catalog)
        try:
            if no_wait:
                await api.purge_table_once(levels, table)
            else:
                await api.drop_table(levels, table, is_purging=purge)
        except OutcomeUnknown as error:
            found = await _find_purge(server.drops(catalog), (*levels, table)) if purge else None
            if found is None:
                raise
            tell(f"Its files are being deleted. Follow that: cynosure tasks watch {found.task_id}")
            if no_wait:
                return False
            raise OutcomeUnknown(
                "The table is dropped, and its files are not gone yet",
                fix="Nothing needs to be done: the work goes on. Or wait for longer with --timeout.",
                task=found.task_id,
            ) from error
        return True

    is_done = to.run(work)
    said = f"Table {table} is gone" + (", and its files are." if purge and is_done else ".")
    done = {"deleted": [*levels, table], **({"purged": is_done} if purge else {})}
    print_done(said, done, to.as_json)


async def _find_purge(api: "DropApi", path: tuple[str, ...]) -> "Dropped | None":
    """The purge of the table that had this path last; `None` when there is none, or it is not told."""
    try:
        dropped = await api.list_dropped()
    except (Forbidden, NotFound):
        return None
    return next((each for each in reversed(dropped) if each.path == path and each.purge is not None), None)


@connected
def list_dropped(to: Remote, catalog: Catalog) -> None:
    """List what was dropped, oldest first: tables of all kinds, views, namespaces; and how far purges are.

    Example: `cynosure tables dropped lake`
    """
    dropped = to.run(lambda server: server.drops(catalog).list_dropped())
    if to.as_json:
        print_json([_as_json(each) for each in dropped])
        return
    print_table(
        ("ID", "KIND", "NAME", "DROPPED", "BY", "PURGE", "TASK", "LAST ERROR"),
        [
            (
                each.id,
                each.kind,
                ".".join(each.path),
                format_time(each.dropped_ms),
                each.principal,
                each.purge,
                each.task_id,
                each.last_error,
            )
            for each in dropped
        ],
    )


@connected
def restore(
    to: Remote,
    catalog: Catalog,
    what: Annotated[
        str, typer.Argument(metavar="NAME|ID", help="What was dropped, with dots, or the id of the drop.")
    ],
    namespace: Annotated[
        list[str] | None,
        typer.Option("--to-namespace", help="Restore into this namespace; once per level."),
    ] = None,
    name: Annotated[str | None, typer.Option("--as", help="Restore under this name.")] = None,
) -> None:
    """Restore a table of any kind, a view or a namespace as it was when it was dropped, with its history.

    When something was dropped several times under one name, they are listed, and an id is needed. To restore
    elsewhere, give both `--to-namespace` and `--as` (for a namespace: only `--to-namespace`). A table whose
    files are being purged cannot be restored any more.

    Example: `cynosure tables restore lake sales.orders`
    """
    path = (*(namespace or ()), *([name] if name is not None else ()))

    async def work(server: "Server") -> "Restored":
        api = server.drops(catalog)
        found = _choose(await api.list_dropped(), what)
        return await api.restore(found.id, path, is_namespace=found.kind == "namespace")

    restored = to.run(work)
    shown = {"kind": restored.kind, "path": restored.path}
    print_done(f"The {restored.kind} {'.'.join(restored.path)} is back.", shown, to.as_json)


def _choose(dropped: "list[Dropped]", what: str) -> "Dropped":
    by_id = [each for each in dropped if each.id == what]
    found = by_id or [each for each in dropped if ".".join(each.path) == what]
    if not found:
        raise NotFound(
            "Nothing that can be restored has this name or id",
            fix="See 'cynosure tables dropped CATALOG'.",
            name=what,
        )
    if len(found) > 1:
        tell(f"{what} was dropped more than once:")
        for each in found:
            tell(f"  {each.id}  {each.kind}  {format_time(each.dropped_ms)}  by {each.principal}")
        raise BadInput("Several drops have this name", field="NAME|ID", fix="Give the id of one of them.")
    return found[0]


def _as_json(dropped: "Dropped") -> dict[str, object]:
    shown: dict[str, object] = {
        "id": dropped.id,
        "kind": dropped.kind,
        "path": dropped.path,
        "dropped_at": format_time(dropped.dropped_ms),
        "principal": dropped.principal,
    }
    if dropped.purge is not None:
        shown |= {"purge": dropped.purge, "task_id": dropped.task_id, "last_error": dropped.last_error}
    return shown
