"""`cynosure privileges …`: grant and revoke privileges."""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli.names import Separator, split_name
from cynosure.cli.output import print_json, print_table
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.roles_output import print_done
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.client.management_types import Kind

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Grant privileges to catalog roles, and take them away.",
    epilog=(
        "What is granted on a catalog or namespace holds for everything in it. `TABLE_READ_DATA` is enough "
        "to read tables, `TABLE_WRITE_DATA` to write them, `CATALOG_MANAGE_CONTENT` is everything inside, "
        "`CATALOG_MANAGE_ACCESS` is to grant. `cynosure privileges names KIND` lists all."
    ),
)

OfCatalog = Annotated[str, typer.Option("--catalog", metavar="NAME", help="The catalog.")]
OfRole = Annotated[str, typer.Option("--catalog-role", metavar="ROLE", help="Who gets it.")]
OfNamespace = Annotated[
    str, typer.Option("--namespace", metavar="NAMESPACE", help="With dots between levels.")
]
Privilege = Annotated[str, typer.Argument(metavar="PRIVILEGE", help="Such as TABLE_READ_DATA.")]


@app.command("list")
@connected
def list_all(to: Remote, catalog: OfCatalog, catalog_role: OfRole) -> None:
    """List what is granted to a catalog role."""
    found = to.run(lambda server: server.management.list_grants(catalog, catalog_role))
    if to.as_json:
        print_json(found)
        return
    print_table(
        ("PRIVILEGE", "ON", "NAMESPACE", "NAME"),
        [(each.privilege, each.type, ".".join(each.namespace) or "-", each.name or "-") for each in found],
    )


@app.command()
def names(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="catalog, namespace, table, view or policy.")],
) -> None:
    """List the privileges that can be granted on a kind of thing."""
    from cynosure.auth.rbac.privileges import GRANTABLE

    if kind not in GRANTABLE:
        raise BadInput("There is no such kind", field="KIND", fix=f"Give one of {', '.join(GRANTABLE)}.")
    for each in sorted(GRANTABLE[kind]):
        print(each.name)


def _group(kind: str, summary: str) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help=summary)
    app.add_typer(group, name=kind)
    return group


def _change(
    to: Remote,
    kind: "Kind",
    privilege: str,
    catalog: str,
    role: str,
    *,
    is_grant: bool,
    namespace: tuple[str, ...] = (),
    name: str = "",
) -> None:
    from cynosure.client.management_types import make_grant

    grant = make_grant(kind, privilege.upper(), namespace, name)
    if is_grant:
        to.run(lambda server: server.management.grant(catalog, role, grant))
    else:
        to.run(lambda server: server.management.revoke(catalog, role, grant))
    on = f"{kind} {'.'.join((*namespace, name)).rstrip('.') or catalog}"
    verb = "has" if is_grant else "no longer has"
    print_done(f"Catalog role {role} of {catalog} {verb} {grant.privilege} on {on}.", grant, to.as_json)


_catalog = _group("catalog", "Privileges on a whole catalog.")
_namespace = _group("namespace", "Privileges on a namespace and everything in it.")
_table = _group("table", "Privileges on one table.")
_view = _group("view", "Privileges on one view.")
_policy = _group("policy", "Privileges on one policy.")


@_catalog.command("grant")
@changing
def grant_on_catalog(to: Remote, privilege: Privilege, catalog: OfCatalog, catalog_role: OfRole) -> None:
    """Grant a privilege on a catalog. Harmless when it is granted.

    Example: `cynosure privileges catalog grant TABLE_READ_DATA --catalog sales --catalog-role reader`
    """
    _change(to, "catalog", privilege, catalog, catalog_role, is_grant=True)


@_catalog.command("revoke")
@changing
def revoke_on_catalog(to: Remote, privilege: Privilege, catalog: OfCatalog, catalog_role: OfRole) -> None:
    """Take a privilege on a catalog away."""
    _change(to, "catalog", privilege, catalog, catalog_role, is_grant=False)


@_namespace.command("grant")
@changing
def grant_on_namespace(
    to: Remote,
    privilege: Privilege,
    catalog: OfCatalog,
    catalog_role: OfRole,
    namespace: OfNamespace,
    separator: Separator = ".",
) -> None:
    """Grant a privilege on a namespace. Harmless when it is granted.

    Example: `cynosure privileges namespace grant TABLE_WRITE_DATA --catalog sales --catalog-role writer
    --namespace eu.orders`
    """
    levels = split_name(namespace, separator)
    _change(to, "namespace", privilege, catalog, catalog_role, is_grant=True, namespace=levels)


@_namespace.command("revoke")
@changing
def revoke_on_namespace(
    to: Remote,
    privilege: Privilege,
    catalog: OfCatalog,
    catalog_role: OfRole,
    namespace: OfNamespace,
    separator: Separator = ".",
) -> None:
    """Take a privilege on a namespace away."""
    levels = split_name(namespace, separator)
    _change(to, "namespace", privilege, catalog, catalog_role, is_grant=False, namespace=levels)


def _add_leaf(group: typer.Typer, kind: "Kind") -> None:
    """Both commands for what is in a namespace and has a name."""
    named = Annotated[str, typer.Option(f"--{kind}", metavar="NAME", help=f"The {kind}.")]

    @changing
    def grant(
        to: Remote,
        privilege: Privilege,
        catalog: OfCatalog,
        catalog_role: OfRole,
        namespace: OfNamespace,
        name: named,
        separator: Separator = ".",
    ) -> None:
        levels = split_name(namespace, separator)
        _change(to, kind, privilege, catalog, catalog_role, is_grant=True, namespace=levels, name=name)

    @changing
    def revoke(
        to: Remote,
        privilege: Privilege,
        catalog: OfCatalog,
        catalog_role: OfRole,
        namespace: OfNamespace,
        name: named,
        separator: Separator = ".",
    ) -> None:
        levels = split_name(namespace, separator)
        _change(to, kind, privilege, catalog, catalog_role, is_grant=False, namespace=levels, name=name)

    group.command("grant", help=f"Grant a privilege on a {kind}. Harmless when it is granted.")(grant)
    group.command("revoke", help=f"Take a privilege on a {kind} away.")(revoke)


_add_leaf(_table, "table")
_add_leaf(_view, "view")
_add_leaf(_policy, "policy")
