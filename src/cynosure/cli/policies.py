"""`cynosure policies …`: what is to be done to tables, or who sees what of them, and where that counts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.names import OfCatalog, OfNamespace, Separator, parse_properties, split_name
from cynosure.cli.output import print_fields, print_json, print_table, tell
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.client.policies import PolicyTarget

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Policies: create them in a namespace, attach them to a catalog, namespace or table.",
    epilog="Types: `system.data-compaction`, `system.metadata-compaction`, `system.orphan-file-removal`, "
    "`system.snapshot-expiry`, `cynosure.row-filter`, `cynosure.column-mask`.",
)

Name = Annotated[str, typer.Argument(metavar="POLICY", help="The policy.")]
ContentFile = Annotated[
    str | None, typer.Option("--file", metavar="FILE", help="What it says, as JSON; - reads stdin.")
]
Content = Annotated[str | None, typer.Option("--content", metavar="JSON", help="The same, inline.")]
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="What it is for, for people.")
]
OfType = Annotated[str, typer.Option("--type", metavar="TYPE", help="Only those of this type.")]
OnCatalog = Annotated[bool, typer.Option("--on-catalog", help="The whole catalog.")]
OnNamespace = Annotated[
    str | None, typer.Option("--on-namespace", metavar="NAMESPACE", help="All that is in a namespace.")
]
OnTable = Annotated[
    str | None, typer.Option("--on-table", metavar="NAMESPACE.TABLE", help="One Iceberg table.")
]


@app.command()
@changing
def create(
    to: Remote,
    policy: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    policy_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="One of those that `cynosure policies -h` lists.")
    ],
    file: ContentFile = None,
    content: Content = None,
    description: Description = None,
    separator: Separator = ".",
) -> None:
    """Create a policy. It does nothing until it is attached to something.

    Example: `cynosure policies create compact --type system.data-compaction --content '{"enable":true}'
    --catalog sales --namespace eu`

    Example, for one role: `cynosure policies create small --type cynosure.row-filter --content
    '{"enable":true, "filter":"amount < 1000", "roles":["analysts"]}' --catalog sales --namespace eu`

    Example, for all but one: `cynosure policies create hide --type cynosure.column-mask --content
    '{"enable":true, "columns":{"ssn":"show-last-4"}, "except-roles":["auditors"]}' --catalog sales
    --namespace eu`
    """
    from cynosure.client.policies import Policy

    levels, said = split_name(namespace, separator), _read_content(file, content)
    if said is None:
        raise BadInput("The policy has no content", field="--file", fix="Give --file or --content.")
    wanted = Policy(name=policy, policy_type=policy_type, content=said, description=description)
    made = to.run(lambda server: server.policies(catalog).create(levels, wanted))
    print_done(f"Policy {policy} of {catalog} is ready.", made, to.as_json)


@app.command("list")
@connected
def list_all(
    to: Remote,
    catalog: OfCatalog,
    namespace: OfNamespace,
    policy_type: OfType = "",
    separator: Separator = ".",
) -> None:
    """List the policies of a namespace."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.policies(catalog).list_all(levels, policy_type))
    if to.as_json:
        print_json(found)
    else:
        print_table(("NAMESPACE", "POLICY"), [(separator.join(each.namespace), each.name) for each in found])
        if not found:
            tell("There is none: cynosure policies create NAME")


@app.command()
@connected
def get(
    to: Remote, policy: Name, catalog: OfCatalog, namespace: OfNamespace, separator: Separator = "."
) -> None:
    """Show a policy and what it says."""
    levels = split_name(namespace, separator)
    found = to.run(lambda server: server.policies(catalog).load(levels, policy))
    if to.as_json:
        print_json(found)
        return
    print_fields(
        {
            "policy": found.name,
            "type": found.policy_type,
            "inherited": "yes" if found.inheritable else "no",
            "version": found.version,
            "description": found.description,
            "content": found.content,
        }
    )


@app.command()
@changing
def update(
    to: Remote,
    policy: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    file: ContentFile = None,
    content: Content = None,
    description: Description = None,
    current_version: Annotated[
        int | None,
        typer.Option("--current-version", metavar="N", help="Refuse if it has another version by now."),
    ] = None,
    separator: Separator = ".",
) -> None:
    """Change what a policy says; what is not given stays.

    Example: `cynosure policies update compact --content '{"enable":false}' --catalog sales --namespace eu`
    """
    levels, said = split_name(namespace, separator), _read_content(file, content)
    if said is None and description is None:
        raise BadInput(
            "Nothing is to be changed", field="--content", fix="Give --file, --content or --description."
        )
    changed = to.run(
        lambda server: server.policies(catalog).update(
            levels, policy, content=said, description=description, current_version=current_version
        )
    )
    print_done(f"Policy {policy} of {catalog} has version {changed.version}.", changed, to.as_json)


@app.command()
@changing
def delete(
    to: Remote,
    policy: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    detach_all: Annotated[
        bool, typer.Option("--detach-all", help="Detach it from everything it is attached to.")
    ] = False,
    separator: Separator = ".",
) -> None:
    """Drop a policy for good.

    Example: `cynosure policies delete compact --detach-all --catalog sales --namespace eu`
    """
    levels = split_name(namespace, separator)
    to.run(lambda server: server.policies(catalog).drop(levels, policy, detach_all=detach_all))
    print_done(f"Policy {policy} of {catalog} is gone.", {"deleted": [*levels, policy]}, to.as_json)


@app.command()
@changing
def attach(
    to: Remote,
    policy: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    on_catalog: OnCatalog = False,
    on_namespace: OnNamespace = None,
    on_table: OnTable = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", metavar="KEY=VALUE", help="For engines; may be repeated."),
    ] = None,
    separator: Separator = ".",
) -> None:
    """Attach a policy to a catalog, a namespace or a table. It counts for all that is below, too.

    Example: `cynosure policies attach compact --catalog sales --namespace eu --on-table eu.orders`
    """
    levels = split_name(namespace, separator)
    target = _choose_target(on_catalog, on_namespace, on_table, separator)
    parameters = parse_properties(parameter, flag="--parameter")
    to.run(lambda server: server.policies(catalog).attach(levels, policy, target, parameters))
    print_done(f"Policy {policy} counts for {_show(target, separator)}.", {"target": target}, to.as_json)


@app.command()
@changing
def detach(
    to: Remote,
    policy: Name,
    catalog: OfCatalog,
    namespace: OfNamespace,
    on_catalog: OnCatalog = False,
    on_namespace: OnNamespace = None,
    on_table: OnTable = None,
    separator: Separator = ".",
) -> None:
    """Detach a policy from what it was attached to.

    Example: `cynosure policies detach compact --catalog sales --namespace eu --on-table eu.orders`
    """
    levels = split_name(namespace, separator)
    target = _choose_target(on_catalog, on_namespace, on_table, separator)
    to.run(lambda server: server.policies(catalog).detach(levels, policy, target))
    text = f"Policy {policy} is not attached to {_show(target, separator)} any more."
    print_done(text, {"target": target}, to.as_json)


@app.command()
@connected
def applicable(
    to: Remote,
    catalog: OfCatalog,
    on_catalog: OnCatalog = False,
    on_namespace: OnNamespace = None,
    on_table: OnTable = None,
    policy_type: OfType = "",
    separator: Separator = ".",
) -> None:
    """List the policies that count for a catalog, a namespace or a table, inherited ones too.

    Example: `cynosure policies applicable --catalog sales --on-table eu.orders`
    """
    target = _choose_target(on_catalog, on_namespace, on_table, separator)
    found = to.run(lambda server: server.policies(catalog).list_applicable(target, policy_type))
    if to.as_json:
        print_json(found)
        return
    print_table(
        ("POLICY", "TYPE", "VERSION", "INHERITED"),
        [
            (
                separator.join((*each.namespace, each.name)),
                each.policy_type,
                each.version,
                "yes" if each.inherited else "no",
            )
            for each in found
        ],
    )
    if not found:
        tell("Nothing is attached to it, nor to what it is in.")


def _read_content(file: str | None, content: str | None) -> str | None:
    if file is not None and content is not None:
        raise BadInput("The content is given twice", field="--file", fix="Give --file or --content.")
    if file is None:
        return content
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            "The file with the content cannot be read",
            field="--file",
            fix="Name a file of UTF-8 text.",
            file=file,
            reason=str(error),
        ) from error


def _choose_target(
    on_catalog: bool, on_namespace: str | None, on_table: str | None, separator: str
) -> "PolicyTarget":
    from cynosure.client.policies import PolicyTarget

    if on_catalog + (on_namespace is not None) + (on_table is not None) != 1:
        raise BadInput(
            "It is not said what is meant",
            field="--on-table",
            fix="Give one of --on-catalog, --on-namespace and --on-table.",
        )
    if on_namespace is not None:
        return PolicyTarget("namespace", split_name(on_namespace, separator, field="--on-namespace"))
    if on_table is None:
        return PolicyTarget("catalog")
    path = split_name(on_table, separator, field="--on-table")
    if len(path) < 2:
        raise BadInput("A table is in a namespace", field="--on-table", fix="Write NAMESPACE.TABLE.")
    return PolicyTarget("table-like", path)


def _show(target: "PolicyTarget", separator: str) -> str:
    return separator.join(target.path) or "the whole catalog"
