"""`cynosure catalogs …`: create, look at, change and delete catalogs.

A maintainer must not break: a secret is never a plain flag, because other users of the machine can see those.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cynosure.cli import options
from cynosure.cli.cascading import Cascade, Purge, Yes, check_flags, describe_plan, drop_with_all
from cynosure.cli.catalog_check import check
from cynosure.cli.connection_flags import ConnectionFlags, naming_connection_flags, with_connection
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
from cynosure.cli.remote import Remote, changing, connected
from cynosure.cli.storage_flags import StorageFlags, check_fields, kind_of, naming_flags, with_storage
from cynosure.common.errors import BadInput, NotFound

if TYPE_CHECKING:
    from cynosure.cli.transport import Server
    from cynosure.client.drops import CascadePlan
    from cynosure.client.management_types import Catalog

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Create, look at, change and delete catalogs.",
    epilog=(
        "A LOCATION is a path, a `file:` URL, `s3://bucket/prefix`, `gs://bucket/prefix` or "
        "`abfss://container@account.dfs.core.windows.net/prefix`. Secrets come from a file (`…-file`; `-` is "
        "standard input) or an environment variable (`…-env`)."
    ),
)

BASE_LOCATION = "default-base-location"

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
TakenAway = Annotated[
    list[str] | None,
    typer.Option(
        "--remove-allowed-location",
        metavar="LOCATION",
        help="Nothing is given or written there from now on; may be repeated.",
    ),
]
StorageType = Annotated[
    Literal["S3", "GCS", "AZURE", "FILE"] | None,
    typer.Option(
        "--storage-type",
        metavar="TYPE",
        case_sensitive=False,
        help="`S3`, `GCS`, `AZURE` or `FILE`. Left out, the location says it.",
    ),
]
CatalogType = Annotated[
    Literal["internal", "external"],
    typer.Option(
        "--type",
        metavar="TYPE",
        case_sensitive=False,
        help="`internal`, or `external`: another catalog owns its tables (see Remote catalog).",
    ),
]


@app.command()
@changing
@with_storage
@with_connection
def create(
    to: Remote,
    storage: StorageFlags,
    name: Name,
    *,
    connection: ConnectionFlags,
    catalog_type: CatalogType = "internal",
    location: Location = None,
    allowed_location: Allowed = None,
    storage_type: StorageType = None,
    properties: Properties = None,
) -> None:
    """Create a catalog. On this machine, without `--location`, its tables go below DATA/warehouse.

    Example: `cynosure catalogs create sales --data ./data`

    Example: `cynosure catalogs create lake --location s3://bucket/prefix --s3-region eu-west-1
    --s3-access-key-id ID --s3-secret-access-key-file FILE`

    Example: `cynosure catalogs create lake --location gs://bucket/prefix --gcs-key-file FILE`

    Example, the catalog of somebody else: `cynosure catalogs create theirs --type external
    --location s3://bucket/theirs --connection-type ICEBERG_REST --connection-uri https://catalog.example.com/api
    --remote-name sales --remote-client-id ID --remote-client-secret-file FILE`
    """

    async def work(server: "Server") -> "Catalog":
        base = make_absolute(location) if location else _default_location(server, name)
        kind = storage_type or kind_of(base)
        wanted = describe_catalog(
            name,
            base,
            [make_absolute(each) for each in allowed_location or ()],
            parse_properties(properties),
            storage.to_fields(kind),
            storage_type=kind,
            catalog_type=catalog_type,
        )
        if (remote := connection.to_info()) is not None:
            wanted["connectionConfigInfo"] = remote
        with naming_flags(kind), naming_connection_flags():
            return await server.management.create_catalog(wanted)

    made = to.run(work, initialise=True)
    if to.as_json:
        print_json(made)
    else:
        print(f"Catalog {made.name} is ready; its tables go to {made.base_location}")
    if made.connection_config_info:
        tell(f"Its remote was not asked yet. Whether it answers: cynosure federation status {made.name}")


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
        ("CATALOG", "STORAGE", "LOCATION", "CREATED", "TYPE"),
        [
            (
                each.name,
                each.storage_type,
                each.base_location,
                format_time(each.create_timestamp),
                each.type.lower(),
            )
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
@changing
@with_storage
@with_connection
def update(
    to: Remote,
    storage: StorageFlags,
    name: Name,
    *,
    connection: ConnectionFlags,
    location: Location = None,
    allowed_location: Allowed = None,
    remove_allowed_location: TakenAway = None,
    properties: SetProperties = None,
    remove_property: RemoveProperties = None,
) -> None:
    """Change a catalog; what is not named stays, keys and secrets too.

    Example: `cynosure catalogs update lake --set-property owner=data-team --allowed-location s3://other/prefix`

    Example, with new keys: `cynosure catalogs update lake --s3-access-key-id ID
    --s3-secret-access-key-file FILE`

    Example, with a new secret for its remote: `cynosure catalogs update theirs
    --remote-client-secret-file FILE`
    """

    async def work(server: "Server") -> "Catalog":
        current = await server.management.load_catalog(name)
        kept = change_properties(current.properties, properties, remove_property)
        added = [make_absolute(each) for each in allowed_location or ()]
        if location:
            kept[BASE_LOCATION] = make_absolute(location)
            added.append(kept[BASE_LOCATION])
        taken = [make_absolute(each) for each in remove_allowed_location or ()]
        wanted = None
        changes = storage.to_fields(current.storage_type)
        if changes or added or taken:
            allowed = _change_locations(current.allowed_locations, added, taken)
            wanted = {**current.storage_config_info, **changes, "allowedLocations": allowed}
        remote = connection.change(current.connection_config_info)
        with naming_flags(current.storage_type), naming_connection_flags():
            return await server.management.update_catalog(
                current, properties=kept, storage=wanted, connection=remote
            )

    _print(to.run(work), to.as_json)


app.command()(check)


@app.command("delete")
@app.command("drop", hidden=True)
@changing
def delete(to: Remote, name: Name, cascade: Cascade = False, purge: Purge = False, yes: Yes = False) -> None:
    """Delete an empty catalog, or one with all it holds. Nothing inside it can be restored any more.

    Example: `cynosure catalogs delete sales --cascade --purge`
    """
    check_flags(is_cascade=cascade, is_purging=purge)
    if cascade:
        _delete_with_all(to, name, is_purging=purge, is_confirmed=yes)
        return

    async def work(server: "Server") -> "Catalog | None":
        try:
            found = await server.management.load_catalog(name)
        except NotFound:
            if to.get_key() is None:
                raise
            # It may be gone because this very command was run before; the server knows by the key.
            found = None
        await server.management.delete_catalog(name)
        return found

    gone = to.run(work)
    if to.as_json:
        print_json(gone or {"name": name})
    elif gone is None:
        print(f"Catalog {name} is gone; its files are left alone.")
    else:
        print(f"Catalog {gone.name} is gone; files below {gone.base_location} are left alone.")


def _delete_with_all(to: Remote, name: str, *, is_purging: bool, is_confirmed: bool) -> None:
    async def work(server: "Server") -> "CascadePlan":
        api = server.catalog_drops()
        return await drop_with_all(
            f"catalog {name}",
            lambda: api.plan(name, is_purging=is_purging),
            lambda: api.drop(name, is_purging=is_purging),
            is_purging=is_purging,
            is_confirmed=is_confirmed,
            is_repeated=to.get_key() is not None,
        )

    gone = to.run(work)
    if to.as_json:
        print_json({"name": name, "with": gone})
    else:
        print(f"Catalog {name} is gone, with {describe_plan(gone)}.")


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


@app.command()
def rewrap(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which catalogs it is about.")] = False,
    config: options.Config = None,
    data: options.Data = None,
    store: options.Store = None,
    as_json: options.Json = False,
) -> None:
    """Protect the keys and secrets of all catalogs, of all realms, by the primary master key.

    Needed before an old master key is removed (`keyring.keys`), together with `cynosure tokens rewrap`.
    """
    from cynosure.cli.operator import run_operator_command
    from cynosure.server.catalog_commands import RewrapParams, Rewrapped

    source = options.make_source(config, {"server.data_dir": data, "persistence.url": store})
    done = run_operator_command("catalogs.rewrap", RewrapParams(dry_run), Rewrapped, source)
    if as_json:
        print_json(done)
        return
    for each in done.catalogs:
        print(each)
    told = "would be" if dry_run else "were"
    print(f"Keys and secrets of {len(done.catalogs)} of {done.looked_at} catalogs {told} rewrapped.")


def describe_catalog(
    name: str,
    base: str,
    allowed: list[str],
    properties: dict[str, str],
    storage: dict[str, Any],
    *,
    storage_type: str | None = None,
    catalog_type: str = "INTERNAL",
) -> dict[str, Any]:
    """A new catalog as the management API takes it."""
    kind = (storage_type or kind_of(base)).upper()
    check_fields(kind, storage)
    return {
        "type": catalog_type.upper(),
        "name": name,
        "properties": {**properties, BASE_LOCATION: base},
        "storageConfigInfo": {"storageType": kind, "allowedLocations": allowed, **storage},
    }


def _change_locations(current: list[str], added: list[str], taken: list[str]) -> list[str]:
    for each in taken:
        if each not in current:
            raise BadInput(
                "The catalog does not allow this location",
                field="--remove-allowed-location",
                fix=f"Name one of {', '.join(current)}.",
                location=each,
            )
    allowed = [each for each in current if each not in taken]
    return allowed + [each for each in added if each not in allowed]


def _default_location(server: "Server", name: str) -> str:
    if server.settings is None:
        raise BadInput(
            "A catalog of a server elsewhere needs a location",
            field="--location",
            fix="Give --location s3://BUCKET/PREFIX.",
        )
    from cynosure.server.catalog_storage import default_location

    return default_location(server.settings, name)


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
            "type": found.type.lower(),
            "storage": found.storage_type,
            **storage,
            "location": found.base_location,
            "also": ", ".join(further),
            **_describe_connection(found.connection_config_info),
            **{f"  {name}": value for name, value in found.properties.items() if name != BASE_LOCATION},
            "version": found.entity_version,
            "created": format_time(found.create_timestamp),
            "updated": format_time(found.last_update_timestamp),
        }
    )


def _describe_connection(info: dict[str, Any]) -> dict[str, Any]:
    if not info:
        return {}
    proof: dict[str, Any] = info.get("authenticationParameters") or {}
    shown = {
        "uri": info.get("uri"),
        "name": info.get("remoteCatalogName"),
        "warehouse": info.get("warehouse"),
        **{name: ", ".join(value) if isinstance(value, list) else value for name, value in proof.items()},
        **(info.get("properties") or {}),
    }
    return {
        "remote": info.get("connectionType"),
        **{f"  {name}": value for name, value in shown.items() if value},
    }
