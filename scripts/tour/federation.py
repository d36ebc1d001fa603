"""The catalog of somebody else behind ours: their tables, our rights, filters and credentials."""

import asyncio
import json
import sys
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from cynosure.testing.admin import MANAGEMENT
from cynosure.testing.catalog_server import ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import ManagedProcess
from tour.sql import ask
from tour.stage import Tour

SECRET_VARIABLE: Final = "THEIR_SECRET"
KEY_VARIABLE: Final = "S3_SECRET"
CUSTOMERS: Final = {"id": [1, 2, 3], "country": ["PT", "PT", "SE"]}
INVOICES: Final = {"id": [1, 2], "total": [120, 80]}
ONLY_PT: Final = {"enable": True, "filter": "country = 'PT'", "roles": ["analysts"]}
ALL_CUSTOMERS: Final = "SELECT id, country FROM crm.customers ORDER BY id"


async def find_another_catalog(tour: Tour) -> None:
    """Somebody else has a catalog, on a server of their own"""
    folder = tour.data.parent
    roots = {"CYNOSURE_STORAGE__FILE_ROOTS__SHARED": str(tour.data / "warehouse")}
    server = await start_catalog_server(
        tour.processes, folder, data=folder / "their-data", name="theirs", env=roots
    )
    tour.hide(server.credential.secret)
    if tour.s3 is None:
        location = (tour.data / "warehouse" / "theirs").as_uri()
        tour.theirs = await server.create_catalog("crm", location=location)
    else:
        location = tour.s3.fresh_location("demo")
        tour.theirs = await server.create_catalog_on(tour.s3, "crm", location=location)
    tour.their_location, tour.their_server = location, server.process
    for name, columns in (("crm.customers", CUSTOMERS), ("crm.invoices", INVOICES)):
        await asyncio.to_thread(write_there, tour, name, columns)
        tour.say(f"{name} at {server.url}: {pa.table(columns).to_pylist()}")


async def put_it_behind_ours(tour: Tour) -> None:
    """Put it behind ours: nothing is copied, its secret is sealed"""
    who, env = theirs(tour).login.credential, {SECRET_VARIABLE: theirs(tour).login.credential.secret}
    words = {
        "--location": tour.their_location,
        "--connection-type": "ICEBERG_REST",
        "--connection-uri": theirs(tour).root,
        "--remote-name": theirs(tour).name,
        "--remote-client-id": who.client_id,
        "--remote-client-secret-env": SECRET_VARIABLE,
        "--remote-scope": "PRINCIPAL_ROLE:ALL",
    }
    if tour.s3 is not None:
        words |= {
            "--s3-endpoint": tour.s3.endpoint,
            "--s3-region": tour.s3.region,
            "--s3-access-key-id": tour.s3.access_key_id,
            "--s3-secret-access-key-env": KEY_VARIABLE,
            "--s3-role-arn": tour.s3.role_arn or "",
            "--s3-path-style": "",
        }
        env[KEY_VARIABLE] = tour.s3.secret_access_key
    said = [word for pair in words.items() for word in pair if word]
    await tour.cynosure("catalogs", "create", "theirs", "--type", "external", *said, env=env)
    grant = "CATALOG_MANAGE_CONTENT --catalog theirs --catalog-role catalog_admin"
    await tour.cynosure("privileges", "catalog", "grant", *grant.split())
    await tour.cynosure("federation", "status")
    shown = await tour.cynosure("tables", "list", "--catalog", "theirs", "--namespace", "crm")
    if "customers" not in shown or "invoices" not in shown:
        sys.exit("demo: the tables of the other catalog are not listed")


async def grant_one_of_their_tables(tour: Tour) -> None:
    """Grant one of their tables: the others do not exist for the analyst"""
    for command in (
        "catalog-roles create their-reader --catalog theirs",
        "catalog-roles grant their-reader --catalog theirs --principal-role analysts",
    ):
        await tour.cynosure(*command.split())
    await grant_customers(tour)
    async with tour.client("ann") as ann:
        asking = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        customers = await ann.get(table_url(tour, "customers"), headers=asking)
        invoices = await ann.get(table_url(tour, "invoices"))
        listed = await ann.get(table_url(tour, ""))
    for answer in (customers, invoices, listed):
        tour.show_answer("ann", answer)
    if (customers.status_code, invoices.status_code, listed.status_code) != (200, 404, 403):
        sys.exit("demo: a grant on one table of theirs is not one on that table")
    if tour.s3 is not None:
        (given,) = customers.json()["storage-credentials"]
        tour.say(f"credentials, made by us, for {given['prefix']}")


async def hide_their_rows(tour: Tour) -> None:
    """Filter rows of a table that we do not own, and read it with SQL"""
    at = ["--catalog", "theirs", "--namespace", "crm"]
    said = ["--type", "cynosure.row-filter", "--content", json.dumps(ONLY_PT)]
    await tour.cynosure("policies", "create", "only-pt", *at, *said)
    await tour.cynosure("policies", "attach", "only-pt", *at, "--on-table", "crm.customers")
    shown = await ask(tour, "ann", ALL_CUSTOMERS, catalog="theirs")
    if "PT" not in shown or "SE" in shown:
        sys.exit("demo: a filter does not count for a table of another catalog")


async def write_to_their_table(tour: Tour) -> None:
    """Write through ours: their catalog decides, and has it"""
    added = pa.table({"id": [4], "country": ["PT"]})
    tour.say(f">>> catalog.load_table('crm.customers').append({added.to_pylist()})   # at {tour.url}")
    await asyncio.to_thread(
        lambda: (
            open_catalog(tour.url, "theirs", tour.users["root"].credential.text)
            .load_table("crm.customers")
            .append(added)
        )
    )
    rows = await asyncio.to_thread(read_there, tour, "crm.customers")
    tour.say(f"there: {rows}")
    if {"id": 4, "country": "PT"} not in rows:
        sys.exit("demo: what was committed here is not there")


async def make_it_anew_there(tour: Tour) -> None:
    """They make a table anew: the grant was for the old one, the filter stays"""
    tour.say(">>> catalog.drop_table('crm.customers'); catalog.create_table('crm.customers', …)   # there")
    await asyncio.to_thread(make_anew, tour)
    told = await tour.cynosure("federation", "reconcile", "theirs", code=1)
    await tour.cynosure("federation", "reconcile", "theirs", "--fix")
    async with tour.client("ann") as ann:
        answer = await ann.get(table_url(tour, "customers"))
    tour.show_answer("ann", answer)
    if "re-created" not in told or "their-reader" not in told or answer.status_code != 404:
        sys.exit("demo: a grant counts for a table that it was not made for")
    await grant_customers(tour)
    shown = await ask(tour, "ann", ALL_CUSTOMERS, catalog="theirs")
    if "PT" not in shown or "SE" in shown:
        sys.exit("demo: a filter was lost because somebody else made the table anew")


async def lose_their_server(tour: Tour) -> None:
    """Their server stops for a while: 503, and nothing of ours waits for it"""
    server = their_server(tour)
    tour.say(f"$ kill -TERM {server.pid}   theirs")
    await server.stop(timeout_s=60)
    async with tour.client() as root:
        away, ours = await root.get(table_url(tour, "customers")), await root.get(tour.table)
    tour.show_answer("root", away)
    tour.show_answer("root", ours)
    await tour.cynosure("federation", "status", code=1)
    if (away.status_code, ours.status_code) != (503, 200):
        sys.exit("demo: a remote that is gone is not told so, or takes others along")
    await server.restart()
    await wait_for_remote(tour)
    await tour.cynosure("federation", "status")


async def move_one_of_their_tables(tour: Tour) -> None:
    """Move one of their tables into our catalog: the others stay theirs"""
    said = ("--into", tour.catalog, "--table", "crm.invoices")
    await tour.cynosure("migrate", "theirs", *said, "--dry-run")
    await tour.cynosure("migrate", "theirs", *said, "--yes")
    ours = open_catalog(tour.url, tour.catalog, tour.users["root"].credential.text)
    rows = await asyncio.to_thread(lambda: ours.load_table("crm.invoices").scan().to_arrow().to_pylist())
    tour.say(f"{tour.catalog}, crm.invoices: {rows}")
    left = await tour.cynosure("tables", "list", "--catalog", "theirs", "--namespace", "crm")
    if len(rows) != len(INVOICES["id"]) or "invoices" in left or "customers" not in left:
        sys.exit("demo: a table is in both catalogs, or in none")


async def take_it_over(tour: Tour) -> None:
    """Take their catalog over, where it is: ids, grants and filters stay"""
    await tour.cynosure("migrate", "theirs", "--dry-run")
    await tour.cynosure("migrate", "theirs", "--yes")
    tour.say(f"$ kill -TERM {their_server(tour).pid}   theirs, for good")
    await their_server(tour).stop(timeout_s=60)
    shown = await ask(tour, "ann", ALL_CUSTOMERS, catalog="theirs")
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"owner": "us"}}]}
    async with tour.client() as root:
        changed = await root.post(table_url(tour, "customers"), json=change)
    tour.show_answer("root", changed)
    if "PT" not in shown or "SE" in shown or changed.status_code != 200:
        sys.exit("demo: what was taken over is not ours, or was changed by it")
    if tour.s3 is not None:
        deleted = await asyncio.to_thread(tour.s3.delete_below, tour.their_location)
        tour.say(f"{deleted} files deleted")


# --- pieces --------------------------------------------------------------------------------------


def theirs(tour: Tour) -> ServedCatalog:
    assert tour.theirs is not None
    return tour.theirs


def their_server(tour: Tour) -> ManagedProcess:
    assert tour.their_server is not None
    return tour.their_server


async def wait_for_remote(tour: Tour) -> None:
    # Until the breaker lets a request through again, and it is answered.
    async with tour.client() as root, asyncio.timeout(60):
        path = f"{MANAGEMENT}/cynosure/catalogs/theirs/remote"
        while not (await root.get(path)).json()["reachable"]:  # noqa: ASYNC110 - another process
            await asyncio.sleep(1)


async def grant_customers(tour: Tour) -> None:
    where = "--catalog theirs --catalog-role their-reader --namespace crm --table customers"
    await tour.cynosure("privileges", "table", "grant", "TABLE_READ_DATA", *where.split())


def table_url(tour: Tour, name: str) -> str:
    """Of a table of theirs, as it is here; of all of them without a name."""
    return f"{tour.url}/api/catalog/v1/theirs/namespaces/crm/tables/{name}".rstrip("/")


def open_catalog(url: str, name: str, credential: str) -> Any:
    """PyIceberg without keys of its own."""
    return load_catalog(
        "theirs",
        type="rest",
        uri=f"{url}/api/catalog",
        warehouse=name,
        credential=credential,
        scope="PRINCIPAL_ROLE:ALL",
        **{"header.X-Iceberg-Access-Delegation": "vended-credentials"},
    )


def open_there(tour: Tour) -> Any:
    """PyIceberg at the other server, as its owner."""
    url = theirs(tour).root.removesuffix("/api/catalog")
    return open_catalog(url, theirs(tour).name, theirs(tour).login.credential.text)


def write_there(tour: Tour, name: str, columns: dict[str, Any]) -> None:
    rows, catalog = pa.table(columns), open_there(tour)
    catalog.create_namespace_if_not_exists(name.split(".", maxsplit=1)[0])
    catalog.create_table(name, schema=rows.schema).append(rows)


def read_there(tour: Tour, name: str) -> list[dict[str, Any]]:
    return list(open_there(tour).load_table(name).scan().to_arrow().to_pylist())


def make_anew(tour: Tour) -> None:
    open_there(tour).drop_table("crm.customers")
    write_there(tour, "crm.customers", CUSTOMERS)
