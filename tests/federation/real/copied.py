"""Tables with all that tables have, and a judge of their copies: by their files alone."""

import io
import json
import os
import struct
import subprocess
import sys
import uuid
import zlib
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyroaring import BitMap64

from cynosure.iceberg.manifests.content_file import Content, ContentFile
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.login import Credential
from tests.engines.soundness import find_missing
from tests.query.differential.written import (
    append_pieces,
    commit_deletes,
    write_equality,
    write_positions,
)

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"row {at}" for at in range(10)]})


def open_catalog(server: CatalogServer, name: str, credential: Credential | None = None) -> Catalog:
    rest = server.get(name).to_rest(credential)
    vended = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    return load_catalog(name, type="rest", uri=rest.uri, **rest.properties, **vended)


def migrate(server: CatalogServer, *words: str, credential: Credential | None = None) -> dict[str, Any]:
    """What `cynosure migrate` says in JSON; with `code` and `err`."""
    ended = subprocess.run(
        command_of(server, *words, "--json"),
        env=environment_of(server, credential),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = json.loads(ended.stdout) if ended.stdout.strip() else {"objects": []}
    return {**told, "code": ended.returncode, "err": ended.stderr}


def command_of(server: CatalogServer, *words: str) -> list[str]:
    return [sys.executable, "-m", "cynosure", "migrate", *words, "--url", server.url]


def environment_of(server: CatalogServer, credential: Credential | None = None) -> dict[str, str]:
    chosen = credential or server.credential
    secrets = {"CYNOSURE_CLIENT_ID": chosen.client_id, "CYNOSURE_CLIENT_SECRET": chosen.secret}
    return {**os.environ, **secrets}


def outcomes(told: dict[str, Any]) -> dict[str, str]:
    return {".".join(each["path"]): each["outcome"] for each in told["objects"]}


def reason(told: dict[str, Any], name: str) -> str:
    [found] = [each for each in told["objects"] if ".".join(each["path"]) == name]
    return str(found.get("reason", ""))


def write_vectors(table: Table, deleted: Sequence[tuple[str, Sequence[int]]]) -> list[ContentFile]:
    """Deletion vectors of some data files, in one Puffin file."""
    body, blobs, places = bytearray(b"PFA1"), [], []
    for path, positions in deleted:
        content = b"\xd1\xd3\x39\x64" + BitMap64(positions).serialize()
        blob = struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))
        places.append((len(body), len(blob)))
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(body),
                "length": len(blob),
                "properties": {"referenced-data-file": path, "cardinality": str(len(positions))},
            }
        )
        body += blob
    footer = msgspec.json.encode({"blobs": blobs, "properties": {"created-by": "a test"}})
    body += b"PFA1" + footer + struct.pack("<I", len(footer)) + bytes(4) + b"PFA1"
    where = f"{table.location()}/data/{uuid.uuid4()}.puffin"
    with table.io.new_output(where).create() as out:
        out.write(bytes(body))
    return [
        ContentFile(
            path=where,
            format="puffin",
            spec_id=0,
            partition=(),
            record_count=len(positions),
            file_size_bytes=len(body),
            content=Content.POSITION_DELETES,
            referenced_data_file=path,
            content_offset=offset,
            content_size_bytes=length,
        )
        for (path, positions), (offset, length) in zip(deleted, places, strict=True)
    ]


def make_rich_table(catalog: Catalog, http: httpx.Client, name: str, *, version: int) -> Table:
    """Several snapshots, a branch, a tag, position deletes; of version 3 deletion vectors instead."""
    namespace, leaf = name.split(".")
    properties = {"format-version": "2" if version > 1 else "1", "owner": "somebody"}
    table = catalog.create_table(name, ROWS.schema, properties=properties)
    first, second = append_pieces(table, [ROWS, ROWS.slice(0, 4)])
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "before").commit()
    url = f"namespaces/{namespace}/tables/{leaf}"
    if version == 2:
        commit_deletes(http, url, table, write_positions(table, [(second, 0), (first, 3), (first, 1)]))
        commit_deletes(http, url, table, write_positions(table, [(second, 2)]))
        add_statistics(http, url, table)
    if version == 3:
        commit_deletes(http, url, table, *write_vectors(table, [(first, [1, 3]), (second, [0])]))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "side").commit()
    if version == 1:
        table.delete("id = 3")
    return catalog.load_table(name)


def add_statistics(http: httpx.Client, url: str, table: Table) -> None:
    """Files with statistics, whatever these say."""
    updates: list[dict[str, Any]] = []
    snapshot = table.current_snapshot().snapshot_id
    for kind, data in (("statistics", b"some sketches"), ("partition-statistics", b"some counts")):
        path = f"{table.location()}/metadata/{uuid.uuid4()}.{kind}"
        with table.io.new_output(path).create() as out:
            out.write(data)
        found = {"snapshot-id": snapshot, "statistics-path": path, "file-size-in-bytes": len(data)}
        if kind == "statistics":
            found |= {"file-footer-size-in-bytes": 4, "blob-metadata": []}
        updates.append({"action": f"set-{kind}", "snapshot-id": snapshot, kind: found})
    http.post(url, json={"requirements": [], "updates": updates}).raise_for_status()


def add_equality_deletes(catalog: Catalog, http: httpx.Client, name: str) -> Table:
    namespace, leaf = name.split(".")
    table = catalog.load_table(name)
    commit_deletes(http, f"namespaces/{namespace}/tables/{leaf}", table, write_equality(table, "id", [5]))
    return table


def rows_of(table: Table) -> dict[int, list[dict[str, Any]]]:
    """Rows at each snapshot that PyIceberg can read, sorted."""
    found = {}
    for snapshot in table.snapshots():
        rows = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
        found[snapshot.snapshot_id] = sorted(rows, key=lambda row: (row["id"], row["name"]))
    return found


def assert_same(source: Table, copy: Table) -> None:
    """The same table, but for what a copy has of its own."""
    one, other = source.metadata, copy.metadata
    assert one.table_uuid != other.table_uuid
    assert other.format_version == one.format_version
    assert other.properties["copied-from.table-uuid"] == str(one.table_uuid)
    for field in ("schemas", "partition_specs", "sort_orders", "refs", "snapshot_log", "last_column_id"):
        assert getattr(one, field) == getattr(other, field), field
    assert getattr(one, "next_row_id", None) == getattr(other, "next_row_id", None)
    for field in ("statistics", "partition_statistics"):
        assert len(getattr(one, field)) == len(getattr(other, field))
    assert [_plain(each) for each in one.snapshots] == [_plain(each) for each in other.snapshots]


def _plain(snapshot: Any) -> dict[str, Any]:
    return snapshot.model_dump(exclude={"manifest_list"})


def assert_apart(copy: Table, source: str) -> None:
    """No file of the copy is missing, and none of them names anything in the source's location."""
    assert find_missing(copy) == []
    texts = [repr(copy.metadata)]
    for each in [*copy.metadata.statistics, *copy.metadata.partition_statistics]:
        assert len(_read(copy, each.statistics_path)) == each.file_size_in_bytes
    for snapshot in copy.snapshots():
        texts.append(_read(copy, snapshot.manifest_list).decode("latin-1"))
        for manifest in snapshot.manifests(copy.io):
            texts.append(manifest.manifest_path)
            assert copy.io.new_input(manifest.manifest_path).__len__() == manifest.manifest_length
            for entry in manifest.fetch_manifest_entry(copy.io):
                texts.append(repr(entry.data_file))
                _look_inside(copy, entry.data_file, texts)
    for text in texts:
        assert source not in text
        assert source.removeprefix("file://") not in text


def _look_inside(copy: Table, file: Any, texts: list[str]) -> None:
    data = _read(copy, file.file_path)
    assert len(data) == file.file_size_in_bytes
    if file.content == 1:
        if str(file.file_format).upper().endswith("PARQUET"):
            read = pq.read_table(io.BytesIO(data))
            keys = list(zip(read["file_path"].to_pylist(), read["pos"].to_pylist(), strict=True))
            assert keys == sorted(keys)
            assert len(keys) == file.record_count
            texts.extend(path for path, _ in keys)
        else:
            texts.append(data.decode("latin-1"))


def _read(table: Table, path: str) -> bytes:
    with table.io.new_input(path).open() as file:
        return bytes(file.read())
