"""`cynosure catalogs …`: create, look at, change and drop catalogs.

A maintainer must not break: a secret is never a plain flag, because other users of the machine can see those.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cynosure.cli import options
from cynosure.cli.operator import run_operator_command
from cynosure.cli.output import print_fields, print_json, print_table, tell
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.server.catalog_commands import CatalogInfo
    from cynosure.server.catalog_storage import S3Params

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Create, look at, change and drop catalogs.",
    epilog=(
        "A LOCATION is a path, a `file:` URL or `s3://bucket/prefix`. The secret key of S3 comes from a file "
        "(`--s3-secret-access-key-file`, `-` reads standard input) or an environment variable "
        "(`--s3-secret-access-key-env`)."
    ),
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the catalog.")]
Location = Annotated[
    str | None,
    typer.Option("--location", metavar="LOCATION", help="Where new tables go.", show_default=False),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option("--allowed-location", metavar="LOCATION", help="Another place for tables; may be repeated."),
]
Properties = Annotated[
    list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="May be repeated.")
]
Endpoint = Annotated[
    str | None, typer.Option("--s3-endpoint", metavar="URL", help="An S3 service other than AWS.")
]
Region = Annotated[str | None, typer.Option("--s3-region", metavar="REGION", help="Region of the bucket.")]
PathStyle = Annotated[
    bool | None,
    typer.Option("--s3-path-style/--s3-virtual-host", help="Bucket in the path, or in the host name."),
]
AccessKeyId = Annotated[
    str | None, typer.Option("--s3-access-key-id", metavar="ID", help="Access key of this catalog.")
]
SecretFile = Annotated[
    str | None,
    typer.Option("--s3-secret-access-key-file", metavar="FILE", help="File with its secret; - reads stdin."),
]
SecretVariable = Annotated[
    str | None,
    typer.Option("--s3-secret-access-key-env", metavar="VARIABLE", help="Variable that holds its secret."),
]


@app.command()
def create(
    name: Name,
    *,
    location: Location = None,
    allowed_location: Allowed = None,
    properties: Properties = None,
    s3_endpoint: Endpoint = None,
    s3_region: Region = None,
    s3_path_style: PathStyle = None,
    s3_access_key_id: AccessKeyId = None,
    s3_secret_access_key_file: SecretFile = None,
    s3_secret_access_key_env: SecretVariable = None,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Create a catalog. Without `--location` its tables go below DATA/warehouse.

    Example: `cynosure catalogs create sales --data ./data`
    """
    from cynosure.server.catalog_commands import CatalogInfo, CreateParams

    params = CreateParams(
        name,
        _absolute(location),
        tuple(_absolute(each) for each in allowed_location or ()),
        _pairs(properties),
        _s3(
            s3_endpoint,
            s3_region,
            s3_path_style,
            s3_access_key_id,
            s3_secret_access_key_file,
            s3_secret_access_key_env,
        ),
    )
    made = run_operator_command("catalogs.create", params, CatalogInfo, _source(config, data, store))
    if as_json:
        print_json(made)
    else:
        print(f"Catalog {made.name} is ready; its tables go to {made.location}")


@app.command("list")
def list_all(
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """List all catalogs."""
    from cynosure.server.catalog_commands import CatalogInfo, ListParams

    source = _source(config, data, store)
    found = run_operator_command("catalogs.list", ListParams(), list[CatalogInfo], source)
    if as_json:
        print_json(found)
        return
    print_table(
        ("CATALOG", "STORAGE", "LOCATION", "CREATED"),
        [(each.name, each.storage, each.location, each.created) for each in found],
    )
    if not found:
        tell("There is none yet: cynosure catalogs create NAME")


@app.command()
def show(
    name: Name,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Show one catalog."""
    from cynosure.server.catalog_commands import CatalogInfo, NameParams

    source = _source(config, data, store)
    _print(run_operator_command("catalogs.show", NameParams(name), CatalogInfo, source), as_json)


@app.command()
def update(
    name: Name,
    *,
    location: Location = None,
    allowed_location: Allowed = None,
    properties: Properties = None,
    remove_property: Annotated[
        list[str] | None, typer.Option("--remove-property", metavar="KEY", help="May be repeated.")
    ] = None,
    s3_endpoint: Endpoint = None,
    s3_region: Region = None,
    s3_path_style: PathStyle = None,
    s3_access_key_id: AccessKeyId = None,
    s3_secret_access_key_file: SecretFile = None,
    s3_secret_access_key_env: SecretVariable = None,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Change a catalog; what is not named stays. Locations can be added, not removed."""
    from cynosure.server.catalog_commands import CatalogInfo, UpdateParams

    params = UpdateParams(
        name,
        _absolute(location),
        tuple(_absolute(each) for each in allowed_location or ()),
        _pairs(properties),
        tuple(remove_property or ()),
        _s3(
            s3_endpoint,
            s3_region,
            s3_path_style,
            s3_access_key_id,
            s3_secret_access_key_file,
            s3_secret_access_key_env,
        ),
    )
    _print(
        run_operator_command("catalogs.update", params, CatalogInfo, _source(config, data, store)), as_json
    )


@app.command()
def drop(
    name: Name,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Drop an empty catalog. What was dropped inside it before cannot be restored any more."""
    from cynosure.server.catalog_commands import CatalogInfo, NameParams

    source = _source(config, data, store)
    gone = run_operator_command("catalogs.drop", NameParams(name), CatalogInfo, source)
    if as_json:
        print_json(gone)
    else:
        print(f"Catalog {gone.name} is dropped; files below {gone.location} are left alone.")


@app.command()
def reopen(
    name: Name,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Open a catalog again whose drop was cut short. Harmless on an open one."""
    from cynosure.server.catalog_commands import CatalogInfo, NameParams

    source = _source(config, data, store)
    _print(run_operator_command("catalogs.reopen", NameParams(name), CatalogInfo, source), as_json)


def _print(found: "CatalogInfo", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    further = [each for each in found.allowed_locations if each != found.location]
    print_fields(
        {
            "catalog": found.name,
            "id": found.id,
            "storage": found.storage,
            **{f"  {name}": value for name, value in found.storage_options.items()},
            "location": found.location,
            "also": ", ".join(further),
            **{f"  {name}": value for name, value in found.properties.items()},
            "version": found.version,
            "created": found.created,
            "updated": found.updated,
        }
    )


def _absolute(location: str | None) -> str:
    """A path as this user means it: the server has another working directory."""
    if not location:
        return ""
    scheme, colon, _ = location.partition(":")
    if colon and scheme.isalnum():
        return location
    return str(Path(location).expanduser().absolute())


def _pairs(given: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for each in given or ():
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise BadInput("A property needs a key and a value", field="property", fix="Write KEY=VALUE.")
        pairs[key] = value
    return pairs


def _s3(
    endpoint: str | None,
    region: str | None,
    path_style: bool | None,
    access_key_id: str | None,
    secret_file: str | None,
    secret_variable: str | None,
) -> "S3Params":
    from cynosure.server.catalog_storage import S3Params

    return S3Params(
        endpoint=endpoint,
        region=region,
        path_style=path_style,
        access_key_id=access_key_id,
        secret_access_key=_read_secret(secret_file, secret_variable),
    )


def _read_secret(file: str | None, variable: str | None) -> str | None:
    from cynosure.common.secrets import Secret

    if file is not None and variable is not None:
        raise BadInput("Two places for one secret", field="secret", fix="Name a file or a variable.")
    if variable is not None:
        if not (text := os.environ.get(variable, "")):
            raise BadInput(
                "The variable with the secret is not set",
                field="--s3-secret-access-key-env",
                fix="Set it, and give its name, not the secret.",
            )
        return text
    if file == "-" and sys.stdin.isatty():
        return str(typer.prompt("Secret access key", hide_input=True, err=True))
    if file == "-":
        return sys.stdin.readline().rstrip("\r\n")
    return None if file is None else Secret.from_file(Path(file)).reveal()


def _source(config: options.Config, data: options.Data, store: options.Store) -> Any:
    return options.make_source(config, {"server.data_dir": data, "persistence.url": store})
