"""Files in an object store, and clients that get keys for one table at a time: `./dev demo --s3`."""

import asyncio
import subprocess
import sys
from typing import Any

import obstore
from obstore.store import S3Store

from cynosure.testing.s3_servers import VARIABLES, S3Server, parse_s3_server
from tests.engines.poison import POISON
from tour.stage import ROOT, Tour

SECRET_VARIABLE = "S3_SECRET"


async def start_the_store(tour: Tour) -> None:
    """Start an S3 server with a token service; no container"""
    tour.say("$ scripts/services start s3")
    await run_services(tour, "start")
    (line,) = (await run_services(tour, "env")).splitlines()
    variable, _, url = line.partition("=")
    if variable != VARIABLES["seaweedfs"]:
        sys.exit(f"demo: scripts/services names {variable}")
    tour.s3 = parse_s3_server("seaweedfs", url)
    tour.hide(tour.s3.secret_access_key)
    tour.say(f"an S3 server at {tour.s3.endpoint}; to end it later: ./dev services stop s3")


async def run_services(tour: Tour, action: str) -> str:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(ROOT / "scripts" / "services"), action, "s3"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"demo: scripts/services {action} ended with {done.returncode}")
    return done.stdout


async def create_a_catalog_on_it(tour: Tour) -> None:
    """Create a catalog there. Its key stays with the server, sealed"""
    store = server_of(tour)
    assert store.role_arn
    words = {
        "--location": store.fresh_location("demo"),
        "--s3-endpoint": store.endpoint,
        "--s3-region": store.region,
        "--s3-access-key-id": store.access_key_id,
        "--s3-secret-access-key-env": SECRET_VARIABLE,
        "--s3-role-arn": store.role_arn,
    }
    await tour.cynosure(
        "catalogs",
        "create",
        tour.catalog,
        *(word for pair in words.items() for word in pair),
        "--s3-path-style",
        env={SECRET_VARIABLE: store.secret_access_key},
    )
    grant = f"CATALOG_MANAGE_CONTENT --catalog {tour.catalog} --catalog-role catalog_admin"
    await tour.cynosure("privileges", "catalog", "grant", *grant.split())


async def write_without_keys(tour: Tour) -> None:
    """Write with PyIceberg, which brings no keys of its own (README.md)"""
    output = await tour.run_snippet("pyiceberg.catalog.rest", env=POISON)
    if "sextant" not in output:
        sys.exit("demo: PyIceberg did not read what it wrote")


async def look_at_the_credentials(tour: Tour) -> None:
    """Look at what a client gets: it reaches this table, for an hour"""
    given = await load_credentials(tour, "root", tour.table)
    for name, value in given["config"].items():
        is_secret = name in ("s3.secret-access-key", "s3.session-token")
        tour.say(f"  {name} = {'********' if is_secret else value}")
    inside = f"{given['prefix'].rstrip('/')}/data/"
    show(tour, "list", inside, obstore.list, store_of(tour, given), path_of(tour, inside))
    everything = f"s3://{server_of(tour).bucket}/"
    if show(tour, "list", everything, obstore.list, store_of(tour, given), None):
        sys.exit("demo: credentials for a table list the bucket")


async def try_another_table(tour: Tour) -> None:
    """Use the same credentials on another table: the store itself refuses"""
    given = await load_credentials(tour, "root", tour.table)
    async with tour.client() as root:
        tables = tour.table.rpartition("/")[0]
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
        made = await root.post(tables, json={"name": "salaries", "schema": schema})
    other = made.raise_for_status().json()["metadata"]["location"]
    tour.say(f"shop.salaries is at {other}")
    store = store_of(tour, given)
    write = (store, path_of(tour, f"{other}/data/mine"), b"x")
    done = [
        show(tour, "put", f"{other}/data/mine", obstore.put, *write),
        show(tour, "get", f"{other}/data/mine", obstore.get, *write[:2]),
        show(tour, "list", f"{other}/", obstore.list, store, path_of(tour, f"{other}/")),
    ]
    if any(done):
        sys.exit("demo: credentials for one table reach another")


async def read_only(tour: Tour) -> None:
    """Let the analyst read: her credentials do not write"""
    given = await load_credentials(tour, "ann", tour.table)
    store, inside = store_of(tour, given), f"{given['prefix'].rstrip('/')}/data/"
    has_listed = show(tour, "list", inside, obstore.list, store, path_of(tour, inside))
    has_written = show(tour, "put", f"{inside}mine", obstore.put, store, path_of(tour, f"{inside}mine"), b"x")
    if (has_listed, has_written) != (True, False):
        sys.exit("demo: credentials of a reader are not for reading")


async def leave_nothing_there(tour: Tour) -> None:
    """Take the files away again"""
    async with tour.client() as root:
        shown = (await root.get(f"/api/management/v1/catalogs/{tour.catalog}")).raise_for_status().json()
    location = shown["properties"]["default-base-location"]
    tour.say(f"{await asyncio.to_thread(server_of(tour).delete_below, location)} files deleted")


# --- pieces --------------------------------------------------------------------------------------


def server_of(tour: Tour) -> S3Server:
    assert tour.s3 is not None
    return tour.s3


async def load_credentials(tour: Tour, who: str, table: str) -> dict[str, Any]:
    """What somebody is given for a table. Its secrets are not shown from now on."""
    async with tour.client(who) as client:
        answer = await client.get(f"{table}/credentials")
    tour.show_answer(who, answer)
    (given,) = answer.raise_for_status().json()["storage-credentials"]
    for name in ("s3.secret-access-key", "s3.session-token"):
        tour.hide(given["config"][name])
    return dict(given)


def store_of(tour: Tour, given: dict[str, Any]) -> S3Store:
    """The bucket, as whoever holds these credentials reaches it."""
    server, config = server_of(tour), given["config"]
    return S3Store(
        server.bucket,
        endpoint=server.endpoint,
        region=server.region,
        access_key_id=config["s3.access-key-id"],
        secret_access_key=config["s3.secret-access-key"],
        session_token=config["s3.session-token"],
        client_options={"allow_http": True},
    )


def path_of(tour: Tour, location: str) -> str:
    return location.removeprefix(f"s3://{server_of(tour).bucket}/")


def show(tour: Tour, verb: str, what: str, call: Any, *arguments: Any) -> bool:
    """Whether the store did it."""
    try:
        done = call(*arguments)
        count = sum(len(batch) for batch in done) if verb == "list" else 1
    except obstore.exceptions.BaseError as refused:
        said = "access denied" if "AccessDenied" in str(refused) else type(refused).__name__
        tour.say(f"{verb} {what}: {said}")
        return False
    tour.say(f"{verb} {what}: ok" + (f", {count} files" if verb == "list" else ""))
    return True
