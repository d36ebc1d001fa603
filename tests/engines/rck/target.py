"""A server of ours for the compatibility kit.

A maintainer must not break: no concession is made to the kit beyond naming the places where it puts tables.
"""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cynosure.testing.catalog_server import CatalogServer, RestCatalog, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential

# We do not make the namespace of a new table by ourselves.
OUR_SWITCHES = {"rck.requires-namespace-create": "true"}

# Tests that demand what we promise not to do; each name with our promise.
FAILS_BY_DESIGN = {
    "tables.testLoadTableWithMissingMetadataFile": (
        "managed metadata: a table whose metadata file is gone still loads, from the store"
    )
}

# Written in the kit; its views go to Java's temporary directory.
TABLE_PLACES = [Path("/tmp/ns"), Path("/tmp/newdb")]


@dataclass(frozen=True)
class KitTarget:
    """An empty catalog on a server of its own, because no other catalog may have the kit's places."""

    server: CatalogServer
    catalog: ServedCatalog
    scratch: Path

    def to_rest(self, credential: Credential | None = None) -> RestCatalog:
        """For the kit, as root unless another credential is given."""
        rest = self.catalog.to_rest(credential)
        return RestCatalog(rest.uri, {**rest.properties, **OUR_SWITCHES, "java.io.tmpdir": str(self.scratch)})


@contextmanager
def serve_for_kit(directory: Path) -> Iterator[KitTarget]:
    """A server with a catalog in which the kit may put its tables; gone when the block ends."""
    scratch = directory / "scratch"
    scratch.mkdir()
    with keeping_places(), Processes(directory) as processes:
        yield asyncio.run(_start(processes, directory, scratch))


@contextmanager
def keeping_places() -> Iterator[None]:
    """What the kit puts where it always does is gone when the block ends."""
    made = [place for place in TABLE_PLACES if not place.exists()]
    try:
        yield
    finally:
        for place in made:
            shutil.rmtree(place, ignore_errors=True)


def file_roots(places: Sequence[Path]) -> dict[str, str]:
    """Settings of a server whose catalogs may have tables there."""
    return {f"CYNOSURE_STORAGE__FILE_ROOTS__KIT{number}": str(place) for number, place in enumerate(places)}


async def _start(processes: Processes, directory: Path, scratch: Path) -> KitTarget:
    places = [scratch, *TABLE_PLACES]
    server = await start_catalog_server(processes, directory, env=file_roots(places))
    catalog = await server.create_catalog("kit", allowed=[place.as_uri() for place in places])
    return KitTarget(server, catalog, scratch)
