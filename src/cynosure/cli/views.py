"""`cynosure views …`: list, look at and drop views."""

from typing import Annotated, Any

import typer

from cynosure.cli.names import OfCatalog, OfNamespace, Separator, split_name
from cynosure.cli.output import print_fields, print_json, print_table
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="List, look at and drop views.")

Name = Annotated[str, typer.Argument(metavar="VIEW", help="The view.")]


@app.command("list")
@connected
def list_all(to: Remote, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = ".") -> None:
    """List the views of a namespace."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.catalog(catalog).list_views(levels))
    if to.as_json:
        print_json(found)
    else:
        print_table(("NAMESPACE", "VIEW"), [(separator.join(each.namespace), each.name) for each in found])


@app.command()
@connected
def get(
    to: Remote, view: Name, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = "."
) -> None:
    """Show a view: its versions and what it says in each dialect; `--json` shows all of its metadata."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.catalog(catalog).load_view(levels, view))
    if to.as_json:
        print_json(found)
        return
    metadata: dict[str, Any] = found["metadata"]
    current = metadata["current-version-id"]
    [version] = [each for each in metadata["versions"] if each["version-id"] == current]
    print_fields(
        {
            "view": view,
            "uuid": metadata["view-uuid"],
            "location": metadata["location"],
            "version": f"{current} of {len(metadata['versions'])}",
            **{f"  {each['dialect']}": " ".join(each["sql"].split()) for each in version["representations"]},
        }
    )


@app.command()
@changing
def delete(
    to: Remote, view: Name, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = "."
) -> None:
    """Drop a view. `cynosure tables restore` brings it back for a while."""
    levels = split_name(namespace, separator)
    to.run(lambda server: server.catalog(catalog).drop_view(levels, view))
    print_done(f"View {view} is gone.", {"deleted": [*levels, view]}, to.as_json)
