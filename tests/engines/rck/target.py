"""A server of ours for the compatibility kit.

A maintainer must not break: no concession is made to the kit beyond naming the places where it puts tables.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines.served import RestCatalog, serve

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


@contextmanager
def serve_for_kit(directory: Path) -> Iterator[RestCatalog]:
    """An empty catalog on a server of its own, because no other catalog may have the kit's places."""
    scratch = directory / "scratch"
    scratch.mkdir()
    places = [scratch, *TABLE_PLACES]
    env = {f"CYNOSURE_STORAGE__FILE_ROOTS__KIT{number}": str(place) for number, place in enumerate(places)}
    made = [place for place in TABLE_PLACES if not place.exists()]
    try:
        with serve(directory, env) as server:
            allowed = [word for place in places for word in ("--allowed-location", place.as_uri())]
            catalog = server.create_catalog(*allowed)
            yield RestCatalog(
                catalog.uri, {**catalog.properties, **OUR_SWITCHES, "java.io.tmpdir": str(scratch)}
            )
    finally:
        for place in made:
            shutil.rmtree(place, ignore_errors=True)
