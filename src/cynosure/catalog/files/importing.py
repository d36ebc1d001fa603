"""Metadata files into the store: on register, and on the first load of a table known by its file only.

Must not break: a table is imported once. The import is a commit that expects the pointer, so of several
servers one wins, and the others find the table.
"""

import gzip
import zlib
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part, end_rehearsal
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import claim, claimant_of
from cynosure.catalog.file_references import places_in_file
from cynosure.catalog.files.versions import keep_version
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_ours
from cynosure.catalog.resolve import require_table_ref
from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.metadata import TableMetadata, parse_metadata
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.storage.errors import FileMissing
from cynosure.storage.location import Location

MAX_BYTES: Final = 256 * 2**20
"""Of a metadata file, unpacked. A hundred thousand snapshots fit."""
_GZIP_MAGIC: Final = b"\x1f\x8b"


async def read_metadata_file(catalog: OpenCatalog, location: Location) -> bytes:
    """The JSON of a metadata file; unpacked when it is packed."""
    try:
        data = await catalog.files.read(location, limit_bytes=MAX_BYTES)
    except FileMissing as error:
        raise BadInput(
            "There is no metadata file at this location",
            field="metadata-location",
            fix="Name the table's current metadata file.",
            location=location.text,
        ) from error
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        unpacker = zlib.decompressobj(wbits=31)
        json = unpacker.decompress(data, MAX_BYTES)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadInput(
            "The metadata file is damaged",
            field="metadata-location",
            fix="Name an intact metadata file.",
            location=location.text,
        ) from error
    if unpacker.unconsumed_tail:
        raise TooLarge(
            "The metadata file is too large",
            field="metadata-location",
            fix="Expire snapshots before it is registered.",
            limit_bytes=MAX_BYTES,
        )
    return json


async def load_metadata_file(catalog: OpenCatalog, location: Location) -> TableMetadata:
    """The metadata that a file holds."""
    return parse_metadata(await read_metadata_file(catalog, location), limits=catalog.limits)


async def import_pointer(catalog: OpenCatalog, caller: Caller, table: Identifier) -> ManagedTable:
    """Bring a table of which only the file is known into the store. At once asked for, it is done once.

    Part of an operation that was authorized for this table: what is imported was named before, by whoever
    made the table known. What the file says is checked as when it is registered; the place that was told for
    the table, and that it does not have, is free again.
    """

    async def prepare(view: View) -> Prepared[ManagedTable]:
        ref = await require_table_ref(view, table)
        if ref.type != POINTER.name:
            return Prepared(await load_table_at(view, ref.id, catalog.shared.tables))
        pointer = (await view.load_many(POINTER, [ref.id]))[0]
        metadata = await load_metadata_file(catalog, Location.parse(pointer.metadata_location))
        check_ours(metadata.properties)
        places = places_in_file(catalog, metadata, pointer.metadata_location)
        held = Held(pointer.id, pointer.location, pointer.claims)
        claimed = await claim(view, claimant_of(catalog, pointer.id), places, before=held)
        imported, objects = keep_version(
            catalog,
            metadata,
            state_id=catalog.shared.persistence.ids.next(),
            entity_id=pointer.id,
            base=None,
            metadata_location=pointer.metadata_location,
            file_number=file_number_of(pointer.metadata_location),
            claims=claimed.claims,
        )
        key, before, after = table_key(table), ref.pack(), imported.ref.pack()
        changes: Changes = {"names": {key: after}}
        merge(changes, claimed.changes)
        detail = raw_detail({"id": pointer.id, "path": (*table.namespace, table.name)})
        feed = Change(
            kind="table-imported", index="names", key=key, before=before, after=after, detail=detail
        )
        return Prepared(imported, changes, objects, [feed])

    # Here, because whoever else waits for the same import is not rehearsing.
    end_rehearsal(caller)

    async def commit() -> ManagedTable:
        return await commit_part(catalog.committer, caller, "import-table", prepare)

    return await catalog.shared.imports.run((catalog.entity.id, table), commit)


def file_number_of(metadata_location: str) -> int:
    """The number in a metadata file's name, so that the next file gets the next one; 0 when it has none."""
    digits = metadata_location.rpartition("/")[2].partition("-")[0]
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 9
    return int(digits) if is_number else 0
