"""Judges a storm: what the server says of each table, what its files say, and what clients were told.

A maintainer must not break: nothing may be in flight any more when this is called.
"""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

from cynosure.testing.catalog_server import ServedCatalog
from cynosure.testing.catalog_storm.clients import NAMESPACE, Ledger


async def judge(catalog: ServedCatalog, tables: list[str], ledger: Ledger) -> list[str]:
    """What is wrong; nothing, if all is well."""
    problems: list[str] = []
    async with catalog.client() as http:
        for name in tables:
            answer = await http.get(f"{catalog.url}/namespaces/{NAMESPACE}/tables/{name}")
            if answer.status_code != 200:
                problems.append(f"{name} does not load: {answer.status_code} {answer.text}")
                continue
            body = answer.json()
            problems += [f"{name}: {each}" for each in judge_table(name, body["metadata"], ledger)]
            problems += [f"{name}: {each}" for each in judge_file(body)]
    return problems


def metadata_files(bodies: list[dict[str, Any]]) -> set[Path]:
    """The metadata files that tables name: the current one and those of the log."""
    named = set[Path]()
    for body in bodies:
        log = [each["metadata-file"] for each in body["metadata"].get("metadata-log", [])]
        named |= {path_of(location) for location in (body["metadata-location"], *log)}
    return named


def path_of(location: str) -> Path:
    """A local file by its location."""
    return Path(location.removeprefix("file://"))


def judge_table(name: str, metadata: dict[str, Any], ledger: Ledger) -> list[str]:
    """What is wrong with a table, given what clients were told."""
    sent = [each for each in ledger.sent if each.table == name]
    problems: list[str] = []
    ids = Counter(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", []))
    problems += [f"snapshot {each} is there {times} times" for each, times in ids.items() if times > 1]
    wanted = {each.number for each in sent if each.kind == "snapshot" and each.outcome == "acknowledged"}
    problems += [f"acknowledged snapshot {each} is lost" for each in sorted(wanted - ids.keys())]
    possible = {each.number for each in sent if each.kind == "snapshot" and each.outcome != "refused"}
    problems += [f"snapshot {each} was refused, or nobody sent it" for each in ids.keys() - possible]
    for client in {each.client for each in sent}:
        counts = [each for each in sent if each.client == client and each.kind == "count"]
        least = max((each.number for each in counts if each.outcome == "acknowledged"), default=0)
        found = int(metadata["properties"].get(f"client-{client}", 0))
        if found < least:
            problems.append(f"client {client} was told {least}, the table says {found}")
        if found and found not in {each.number for each in counts if each.outcome != "refused"}:
            problems.append(f"client {client} never sent {found}, or it was refused")
    return problems


def judge_file(body: dict[str, Any]) -> list[str]:
    """What is wrong with a table's metadata file, given what the server says."""
    path = path_of(body["metadata-location"])
    try:
        data = path.read_bytes()
        written = json.loads(gzip.decompress(data) if path.name.endswith(".gz.metadata.json") else data)
    except (OSError, ValueError) as error:
        return [f"its metadata file cannot be read: {error!r}"]
    return [] if written == body["metadata"] else ["its metadata file says something else than the server"]
