"""Files that metadata names: inside what the table holds, or nobody else's."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.catalog.bulk_import import ListedTable, import_tables
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.locations import EXTERNAL_METADATA
from cynosure.catalog.managed.identity import load_held
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.location import Location
from cynosure.testing.small_catalog import ROOT, make_catalog
from tests.catalog.tables import T, change, decoded, make, properties, snapshot, updates

pytestmark = pytest.mark.anyio

OTHER = Identifier(("ns",), "other")
NEW = Identifier(("ns",), "new")


async def claims_of(catalog: OpenCatalog, table: Identifier = T) -> tuple[str, ...]:
    state = await catalog.read()
    return (await load_held(state, await require_table_ref(state, table))).claims


def naming(kind: str, path: str, location: str) -> list[dict]:
    """What makes a table name this file."""
    add, set_main = snapshot(1, at=location)
    if kind == "manifest-list":
        add["snapshot"]["manifest-list"] = path
        return [add, set_main]
    known = {"snapshot-id": 1, "statistics-path": path, "file-size-in-bytes": 1}
    if kind == "statistics":
        known |= {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    return [add, set_main, {"action": f"set-{kind}", kind: known}]


KINDS = ["manifest-list", "statistics", "partition-statistics"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_commit_cannot_name_files_of_another_table_or_from_outside(
    catalog: OpenCatalog, kind: str
) -> None:
    victim = decoded(await make(catalog, OTHER))["location"]
    own = decoded(await make(catalog))["location"]
    before = (await catalog.read()).commit_id
    for path in (
        f"{victim}/metadata/snap.avro",
        f"{victim}",
        f"{own}/../{victim.rpartition('/')[2]}/x.avro",
        f"{own}/%2e%2e/x.avro",
        "file:///etc/passwd",
        "s3://elsewhere/x.avro",
        "x.avro",
        f"{own}/metadata/x.avro?y",
    ):
        with pytest.raises((LocationRefused, BadInput)):
            await change(catalog, *naming(kind, path, own))
        wanted = TableChange(T, [], updates(*naming(kind, path, own)))
        with pytest.raises((LocationRefused, BadInput)):
            await commit_transaction(catalog, ROOT, [wanted])
    assert (await catalog.read()).commit_id == before

    await change(catalog, *naming(kind, f"{own}/metadata/x.avro", own))
    assert await claims_of(catalog) == ()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_file_elsewhere_that_nobody_holds_becomes_the_tables(catalog: OpenCatalog, kind: str) -> None:
    own = decoded(await make(catalog))["location"]
    stray = f"{catalog.base.text}/shared/x.avro"
    await change(catalog, *naming(kind, stray, own))

    assert await claims_of(catalog) == (stray,)
    for taken in (stray, f"{catalog.base.text}/shared"):
        with pytest.raises(LocationRefused):
            await make(catalog, OTHER, location=taken)


# --- metadata files that somebody wrote --------------------------------------------------------------


async def write(location: str, metadata: dict[str, Any]) -> str:
    path = Path(location.removeprefix("file://"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(metadata))
    return location


async def forge(catalog: OpenCatalog, where: str = "", **fields: object) -> str:
    """A file at a table's place that no table has any more."""
    metadata = decoded(await make(catalog, NEW)) | fields
    await drop_table(catalog, ROOT, NEW)
    return await write(where or f"{metadata['location']}/metadata/forged.metadata.json", metadata)


def snapshots_at(*paths: str) -> list[dict]:
    return [
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": number,
            "manifest-list": path,
            "summary": {"operation": "append"},
        }
        for number, path in enumerate(paths, 1)
    ]


async def test_a_file_is_registered_only_from_where_its_table_is(catalog: OpenCatalog) -> None:
    outside = await forge(catalog, f"{catalog.base.text}/imports/v1.metadata.json")
    with pytest.raises(LocationRefused, match="not inside its table's location"):
        await register_table(catalog, ROOT, NEW, outside)

    metadata_path = f"{catalog.base.text}/meta/of/new"
    inside = await forge(
        catalog, f"{metadata_path}/v1.metadata.json", properties={"write.metadata.path": metadata_path}
    )
    await register_table(catalog, ROOT, NEW, inside)
    assert await claims_of(catalog, NEW) == (metadata_path,)


async def test_a_catalog_may_take_files_from_anywhere_it_may_use_that_is_nobody_elses(
    catalog: OpenCatalog, directory: Directory
) -> None:
    update = CatalogUpdate(set_properties={EXTERNAL_METADATA: "true"})
    await update_catalog(directory, ROOT, "lake", update)
    opened = await directory.open(DEFAULT_REALM, "lake")
    victim = decoded(await make(opened))["location"]
    inside_victim = await forge(opened, f"{victim}/metadata/v1.metadata.json")
    with pytest.raises(LocationRefused, match="overlaps with another table"):
        await register_table(opened, ROOT, OTHER, inside_victim)

    for table in (OTHER, NEW):
        file = await forge(opened, f"{opened.base.text}/imports/{table.name}.metadata.json")
        await register_table(opened, ROOT, table, file)
        assert await claims_of(opened, table) == (file,)
        after = await change(opened, properties(k="v"), table=table)
        assert decoded(after)["metadata-log"][-1]["metadata-file"] == file


@pytest.mark.parametrize("name", ["snapshots", "statistics", "partition-statistics", "metadata-log"])
async def test_a_file_that_names_those_of_another_table_is_not_registered(
    catalog: OpenCatalog, name: str
) -> None:
    victim = decoded(await make(catalog))["location"]
    stolen = f"{victim}/metadata/stolen"
    known = {"snapshot-id": 1, "statistics-path": stolen, "file-size-in-bytes": 1}
    fields: dict[str, Any] = {
        "snapshots": snapshots_at(stolen),
        "statistics": [{**known, "file-footer-size-in-bytes": 1, "blob-metadata": []}],
        "partition-statistics": [known],
        "metadata-log": [{"timestamp-ms": 1, "metadata-file": stolen}],
    }
    file = await forge(catalog, **{name: fields[name], "last-sequence-number": 1})
    before = (await catalog.read()).commit_id

    with pytest.raises(LocationRefused, match="overlaps"):
        await register_table(catalog, ROOT, NEW, file)

    assert (await catalog.read()).commit_id == before


async def test_a_long_history_elsewhere_is_held_by_its_directory(catalog: OpenCatalog) -> None:
    """A table that has moved, and comes from another catalog: its manifest lists are where it was."""
    former = f"{catalog.base.text}/former/metadata"
    snapshots = snapshots_at(*(f"{former}/snap-{number}.avro" for number in range(200)))
    file = await forge(catalog, snapshots=snapshots, **{"last-sequence-number": 200})

    await register_table(catalog, ROOT, NEW, file)

    assert await claims_of(catalog, NEW) == (former,)
    with pytest.raises(LocationRefused):
        await make(catalog, T, location=f"{catalog.base.text}/former")


async def test_the_first_load_of_an_imported_table_checks_what_a_registration_does(
    catalog: OpenCatalog, directory: Directory, tmp_path: Path
) -> None:
    empty = await make_catalog(directory, tmp_path / "files", "empty")
    base = empty.base.text
    plain = decoded(await make(catalog))
    stolen = {"snapshots": snapshots_at(f"{base}/fine/metadata/snap.avro"), "last-sequence-number": 1}
    wrong: dict[str, tuple[str, dict[str, Any]]] = {
        "fine": ("", {}),
        "outside": ("outside what", {"properties": {"write.data.path": "file:///etc"}}),
        "elsewhere": ("outside what", {"location": plain["location"]}),
        "reserved": ("reserved", {"properties": {"cynosure.reserved": "x"}}),
        "stolen": ("overlaps", stolen),
        "paths": ("overlaps", {"properties": {"write.data.path": f"{base}/fine/data"}}),
    }
    tables = []
    for name, (_, fields) in wrong.items():
        metadata = {**plain, "location": f"{base}/{name}", **fields}
        file = await write(f"{base}/{name}/metadata/v1.metadata.json", metadata)
        tables.append(ListedTable(Identifier(("ns",), name), file))
    await import_tables(empty, ROOT, tables)

    await load_table(empty, ROOT, Identifier(("ns",), "fine"))
    for name, (why, _) in list(wrong.items())[1:]:
        with pytest.raises((LocationRefused, BadInput), match=why):
            await load_table(empty, ROOT, Identifier(("ns",), name))


async def test_an_import_takes_a_file_elsewhere_only_where_the_catalog_says_so(
    directory: Directory, tmp_path: Path
) -> None:
    empty = await make_catalog(directory, tmp_path / "files", "empty")
    base = empty.base.text
    listed = [
        ListedTable(Identifier(("ns",), name), f"{base}/imports/{name}.json", f"{base}/{name}")
        for name in ("a", "b")
    ]
    with pytest.raises(LocationRefused, match="not inside"):
        await import_tables(empty, ROOT, listed)

    update = CatalogUpdate(set_properties={EXTERNAL_METADATA: "true"})
    await update_catalog(directory, ROOT, "empty", update)
    opened = await directory.open(DEFAULT_REALM, "empty")
    await import_tables(opened, ROOT, listed)

    assert await claims_of(opened, Identifier(("ns",), "a")) == (f"{base}/imports/a.json",)
    with pytest.raises(LocationRefused):
        await make(opened, location=Location.parse(f"{base}/imports/b.json").text)
