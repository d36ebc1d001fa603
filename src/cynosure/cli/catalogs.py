"""`cynosure catalogs …`: create, look at, change and delete catalogs.

A maintainer must not break: a secret is never a plain flag, because other users of the machine can see those.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cynosure.cli import options
from cynosure.cli.flags import read_secret
from cynosure.cli.names import (
    Properties,
    RemoveProperties,
    SetProperties,
    change_properties,
    format_time,
    make_absolute,
    parse_properties,
)
from cynosure.cli.output import print_fields, print_json, print_table, tell
from cynosure.cli.remote import Remote, connected
from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.client.management_types import Catalog

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Create, look at, change and delete catalogs.",
    epilog=(
        "A LOCATION is a path, a `file:` URL or `s3://bucket/prefix`. The secret key of S3 comes from a file "
        "(`--s3-secret-access-key-file`, `-` reads standard input) or an environment variable "
        "(`--s3-secret-access-key-env`)."
    ),
)

BASE_LOCATION = "default-base-location"
_S3_PANEL = "S3"

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the catalog.")]
Location = Annotated[
    str | None,
    typer.Option(
        "--location",
        "--default-base-location",
        metavar="LOCATION",
        help="Where new tables go.",
        show_default=False,
    ),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option("--allowed-location", metavar="LOCATION", help="Another place for tables; may be repeated."),
]
StorageType = Annotated[
    str | None,
    typer.Option("--storage-type", metavar="S3|FILE", help="Left out, the location says it."),
]
Endpoint = Annotated[
    str | None,
    typer.Option(
        "--s3-endpoint",
        metavar="URL",
        help="An S3 service other than AWS.",
        rich_help_panel=_S3_PANEL,
    ),
]
Region = Annotated[
    str | None,
    typer.Option("--s3-region", metavar="REGION", help="Region of the bucket.", rich_help_panel=_S3_PANEL),
]
PathStyle = Annotated[
    bool | None,
    typer.Option(
        "--s3-path-style/--s3-virtual-host",
        help="Bucket in the path, or in the host name.",
        rich_help_panel=_S3_PANEL,
    ),
]
AccessKeyId = Annotated[
    str | None,
    typer.Option(
        "--s3-access-key-id", metavar="ID", help="Access key of this catalog.", rich_help_panel=_S3_PANEL
    ),
]
SecretFile = Annotated[
    str | None,
    typer.Option(
        "--s3-secret-access-key-file",
        metavar="FILE",
        help="File with its secret; - reads stdin.",
        rich_help_panel=_S3_PANEL,
    ),
]
SecretVariable = Annotated[
    str | None,
    typer.Option(
        "--s3-secret-access-key-env",
        metavar="VARIABLE",
        help="Variable that holds its secret.",
        rich_help_panel=_S3_PANEL,
    ),
]
RoleArn = Annotated[
    str | None,
    typer.Option(
        "--s3-role-arn",
        metavar="ARN",
        help="Role that clients' credentials are made from.",
        rich_help_panel=_S3_PANEL,
    ),
]
ExternalId = Annotated[
    str | None,
    typer.Option(
        "--s3-external-id",
        metavar="ID",
        help="What the role expects of who assumes it.",
        rich_help_panel=_S3_PANEL,
    ),
]
StsEndpoint = Annotated[
    str | None,
    typer.Option(
        "--s3-sts-endpoint",
        metavar="URL",
        help="An STS other than AWS.",
        rich_help_panel=_S3_PANEL,
    ),
]
NoSts = Annotated[
    bool | None,
    typer.Option("--s3-no-sts/--s3-sts", help="The service has no STS.", rich_help_panel=_S3_PANEL),
]


@app.command()
@connected
def create(
    to: Remote,
    name: Name,
    *,
    location: Location = None,
    allowed_location: Allowed = None,
    storage_type: StorageType = None,
    properties: Properties = None,
    s3_endpoint: Endpoint = None,
    s3_region: Region = None,
    s3_path_style: PathStyle = None,
    s3_access_key_id: AccessKeyId = None,
    s3_secret_access_key_file: SecretFile = None,
    s3_secret_access_key_env: SecretVariable = None,
    s3_role_arn: RoleArn = None,
    s3_external_id: ExternalId = None,
    s3_sts_endpoint: StsEndpoint = None,
    s3_no_sts: NoSts = None,
) -> None:
    """Create a catalog. On this machine, without `--location`, its tables go below DATA/warehouse.

    Example: `cynosure catalogs create sales --data ./data`

    Example: `cynosure catalogs create lake --location s3://bucket/prefix --s3-region eu-west-1
    --s3-access-key-id ID --s3-secret-access-key-file FILE`
    """
    secret = _read_key(s3_secret_access_key_file, s3_secret_access_key_env)
    s3 = {
        "endpoint": s3_endpoint,
        "region": s3_region,
        "pathStyleAccess": s3_path_style,
        "accessKeyId": s3_access_key_id,
        "secretAccessKey": secret,
        "roleArn": s3_role_arn,
        "externalId": s3_external_id,
        "stsEndpoint": s3_sts_endpoint,
        "stsUnavailable": s3_no_sts,
    }

    async def work(server: "Server") -> "Catalog":
        base = make_absolute(location) if location else _default_location(server, name)
        wanted = describe_catalog(
            name,
            base,
            [make_absolute(each) for each in allowed_location or ()],
            parse_properties(properties),
            {key: value for key, value in s3.items() if value is not None},
            storage_type=storage_type,
        )
        return await server.management.create_catalog(wanted)

    made = to.run(work, initialise=True)
    if to.as_json:
        print_json(made)
    else:
        print(f"Catalog {made.name} is ready; its tables go to {made.base_location}")


@app.command("list")
@connected
def list_all(
    to: Remote,
    principal_role: Annotated[
        str | None,
        typer.Option("--principal-role", metavar="ROLE", help="Only those in which it has a catalog role."),
    ] = None,
) -> None:
    """List catalogs."""

    async def work(server: "Server") -> "list[Catalog]":
        found = await server.management.list_catalogs()
        if principal_role is None:
            return found
        return [
            each for each in found if await server.management.list_catalog_roles_of(principal_role, each.name)
        ]

    found = to.run(work)
    if to.as_json:
        print_json(found)
        return
    print_table(
        ("CATALOG", "STORAGE", "LOCATION", "CREATED"),
        [
            (each.name, each.storage_type, each.base_location, format_time(each.create_timestamp))
            for each in found
        ],
    )
    if not found:
        tell("There is none yet: cynosure catalogs create NAME")


@app.command("get")
@app.command("show", hidden=True)
@connected
def get(to: Remote, name: Name) -> None:
    """Show one catalog."""
    _print(to.run(lambda server: server.management.load_catalog(name)), to.as_json)


@app.command()
@connected
def update(
    to: Remote,
    name: Name,
    *,
    location: Location = None,
    allowed_location: Allowed = None,
    properties: SetProperties = None,
    remove_property: RemoveProperties = None,
    s3_endpoint: Endpoint = None,
    s3_region: Region = None,
    s3_path_style: PathStyle = None,
    s3_access_key_id: AccessKeyId = None,
    s3_secret_access_key_file: SecretFile = None,
    s3_secret_access_key_env: SecretVariable = None,
    s3_sts_endpoint: StsEndpoint = None,
    s3_no_sts: NoSts = None,
) -> None:
    """Change a catalog; what is not named stays. Locations can be added, not removed.

    Example: `cynosure catalogs update lake --set-property owner=data-team --allowed-location s3://other/prefix`
    """
    secret = _read_key(s3_secret_access_key_file, s3_secret_access_key_env)
    storage = {
        "endpoint": s3_endpoint,
        "region": s3_region,
        "pathStyleAccess": s3_path_style,
        "accessKeyId": s3_access_key_id,
        "secretAccessKey": secret,
        "stsEndpoint": s3_sts_endpoint,
        "stsUnavailable": s3_no_sts,
    }
    changes = {key: value for key, value in storage.items() if value is not None}

    async def work(server: "Server") -> "Catalog":
        current = await server.management.load_catalog(name)
        kept = change_properties(current.properties, properties, remove_property)
        added = [make_absolute(each) for each in allowed_location or ()]
        if location:
            kept[BASE_LOCATION] = make_absolute(location)
            added.append(kept[BASE_LOCATION])
        wanted = None
        if changes or added:
            _check_s3(current.storage_type, changes)
            allowed = current.allowed_locations
            allowed += [each for each in added if each not in allowed]
            wanted = {**current.storage_config_info, **changes, "allowedLocations": allowed}
        return await server.management.update_catalog(current, properties=kept, storage=wanted)

    _print(to.run(work), to.as_json)


@app.command("delete")
@app.command("drop", hidden=True)
@connected
def delete(to: Remote, name: Name) -> None:
    """Delete an empty catalog. What was dropped inside it before cannot be restored any more."""

    async def work(server: "Server") -> "Catalog":
        found = await server.management.load_catalog(name)
        await server.management.delete_catalog(name)
        return found

    gone = to.run(work)
    if to.as_json:
        print_json(gone)
    else:
        print(f"Catalog {gone.name} is gone; files below {gone.base_location} are left alone.")


@app.command()
def reopen(
    name: Name,
    realm: options.Realm = "default",
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Open a catalog again whose deletion was cut short. Harmless on an open one."""
    from cynosure.cli.operator import run_operator_command
    from cynosure.server.catalog_commands import Reopened, ReopenParams

    source = options.make_source(config, {"server.data_dir": data, "persistence.url": store})
    done = run_operator_command("catalogs.reopen", ReopenParams(name, realm=realm), Reopened, source)
    if as_json:
        print_json(done)
    else:
        print(f"Catalog {done.name} is open.")


def describe_catalog(
    name: str,
    base: str,
    allowed: list[str],
    properties: dict[str, str],
    s3: dict[str, Any],
    *,
    storage_type: str | None = None,
) -> dict[str, Any]:
    """A new catalog as the management API takes it."""
    kind = (storage_type or ("FILE" if base.startswith("file:") else "S3")).upper()
    _check_s3(kind, s3)
    if bool(s3.get("accessKeyId")) != bool(s3.get("secretAccessKey")):
        raise BadInput(
            "An access key needs its id and its secret",
            field="--s3-access-key-id",
            fix="Give --s3-access-key-id, and --s3-secret-access-key-file or --s3-secret-access-key-env.",
        )
    return {
        "type": "INTERNAL",
        "name": name,
        "properties": {**properties, BASE_LOCATION: base},
        "storageConfigInfo": {"storageType": kind, "allowedLocations": allowed, **s3},
    }


def _default_location(server: "Server", name: str) -> str:
    if server.settings is None:
        raise BadInput(
            "A catalog of a server elsewhere needs a location",
            field="--location",
            fix="Give --location s3://BUCKET/PREFIX.",
        )
    from cynosure.server.catalog_storage import default_location

    return default_location(server.settings, name)


def _read_key(file: str | None, variable: str | None) -> str | None:
    return read_secret(file, variable, flag="--s3-secret-access-key", prompt="Secret access key")


def _check_s3(storage_type: str, s3: dict[str, Any]) -> None:
    if storage_type == "FILE" and s3:
        raise BadInput(
            "Local files need no S3 options",
            field="--location",
            fix="Give a location that begins with s3://, or leave the S3 options out.",
        )


def _print(found: "Catalog", as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    storage = {
        f"  {name}": value if isinstance(value, str) else str(value).lower()
        for name, value in found.storage_config_info.items()
        if name not in ("storageType", "allowedLocations") and value not in (None, [])
    }
    further = [each for each in found.allowed_locations if each != found.base_location]
    print_fields(
        {
            "catalog": found.name,
            "storage": found.storage_type,
            **storage,
            "location": found.base_location,
            "also": ", ".join(further),
            **{f"  {name}": value for name, value in found.properties.items() if name != BASE_LOCATION},
            "version": found.entity_version,
            "created": format_time(found.create_timestamp),
            "updated": format_time(found.last_update_timestamp),
        }
    )
