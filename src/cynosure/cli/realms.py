"""`cynosure realms …`: create, look at, change and delete realms, and give a root new credentials.

Through the server's operator socket, or on the store itself when no server runs: the right to do this is the
right to use the data directory.

A maintainer must not break: a secret is printed once, when it is made, and is never a plain flag.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from cynosure.cli import options
from cynosure.cli.flags import read_secret
from cynosure.cli.names import format_properties, parse_properties
from cynosure.cli.operator import run_operator_command
from cynosure.cli.output import print_fields, print_json, print_table, tell

if TYPE_CHECKING:
    from cynosure.server.realm_commands import RealmInfo, RootInfo
    from cynosure.server.settings import SettingsSource

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Realms: whole installations beside each other, each with its own catalogs and principals.",
    epilog="Clients choose a realm with the header `Polaris-Realm`; without it they mean `default`.",
)

Name = Annotated[str, typer.Argument(metavar="REALM", help="Name of the realm.")]
Properties = Annotated[
    list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="May be repeated.")
]
SetProperties = Annotated[
    list[str] | None,
    typer.Option("--set-property", "--property", metavar="KEY=VALUE", help="May be repeated."),
]
RemoveProperties = Annotated[
    list[str] | None, typer.Option("--remove-property", metavar="KEY", help="May be repeated.")
]
ClientId = Annotated[
    str | None, typer.Option("--client-id", metavar="ID", help="Client id of its root. Default: random.")
]
SecretFile = Annotated[
    str | None,
    typer.Option("--client-secret-file", metavar="FILE", help="File with its secret; - reads stdin."),
]
SecretVariable = Annotated[
    str | None,
    typer.Option("--client-secret-env", metavar="VARIABLE", help="Variable that holds its secret."),
]


@app.command()
def create(
    name: Name,
    *,
    properties: Properties = None,
    client_id: ClientId = None,
    client_secret_file: SecretFile = None,
    client_secret_env: SecretVariable = None,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Create a realm. Its root may do everything in it; the credentials are shown this once.

    Example: `cynosure realms create acme --data ./data`
    """
    from cynosure.server.realm_commands import CreateRealmParams, RootInfo

    secret = read_secret(
        client_secret_file, client_secret_env, flag="client-secret", prompt="Secret of the root"
    )
    params = CreateRealmParams(name, parse_properties(properties), client_id or "", secret or "")
    made = run_operator_command("realms.create", params, RootInfo, _source(config, data, store))
    _print_root(made, "is ready", as_json=as_json)


@app.command("list")
def list_all(
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """List all realms."""
    from cynosure.server.realm_commands import ListRealmsParams, RealmInfo

    source = _source(config, data, store)
    found = run_operator_command("realms.list", ListRealmsParams(), list[RealmInfo], source)
    if as_json:
        print_json(found)
        return
    print_table(
        ("REALM", "CREATED", "PROPERTIES"),
        [(each.name, each.created, format_properties(each.properties)) for each in found],
    )


@app.command("get")
@app.command("show", hidden=True)
def show(
    name: Name,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Show one realm."""
    from cynosure.server.realm_commands import RealmInfo, RealmParams

    source = _source(config, data, store)
    _print(run_operator_command("realms.show", RealmParams(name), RealmInfo, source), as_json=as_json)


@app.command()
def update(
    name: Name,
    *,
    properties: SetProperties = None,
    remove_property: RemoveProperties = None,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Change the properties of a realm; what is not named stays."""
    from cynosure.server.realm_commands import RealmInfo, UpdateRealmParams

    params = UpdateRealmParams(name, parse_properties(properties), tuple(remove_property or ()))
    changed = run_operator_command("realms.update", params, RealmInfo, _source(config, data, store))
    _print(changed, as_json=as_json)


@app.command()
def delete(
    name: Name,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Delete a realm without catalogs: its principals, roles, tokens and events are gone for good."""
    from cynosure.server.realm_commands import RealmParams

    gone = run_operator_command("realms.delete", RealmParams(name), RealmParams, _source(config, data, store))
    if as_json:
        print_json(gone)
    else:
        print(f"Realm {gone.name} is gone.")


@app.command("reset-root")
def reset_root(
    name: Annotated[str, typer.Argument(metavar="REALM", help="Name of the realm.")] = "default",
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """New credentials for the root of a realm, for whoever lost them. The old ones are out at once."""
    from cynosure.server.realm_commands import RealmParams, RootInfo

    source = _source(config, data, store)
    made = run_operator_command("realms.reset-root", RealmParams(name), RootInfo, source)
    _print_root(made, "has new root credentials", as_json=as_json)


def _print_root(made: "RootInfo", what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    if not made.client_secret:
        tell(f"Realm {made.realm} {what}. A server that started just now made its root and shows its secret.")
        return
    print_fields(
        {
            "realm": made.realm,
            "principal": made.principal,
            "client id": made.client_id,
            "client secret": made.client_secret,
        }
    )
    tell(f"Realm {made.realm} {what}. The secret is not shown again.")


def _print(found: "RealmInfo", *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    print_fields(
        {
            "realm": found.name,
            "created": found.created,
            **{f"  {key}": value for key, value in found.properties.items()},
            "state": "being deleted: delete it again" if found.is_being_deleted else "",
        }
    )


def _source(config: options.Config, data: options.Data, store: options.Store) -> "SettingsSource":
    return options.make_source(config, {"server.data_dir": data, "persistence.url": store})
