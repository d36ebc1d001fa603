"""Names and instructions that mean something to Spark: they mean only themselves."""

import json
import uuid
from contextlib import suppress
from typing import Any

import httpx
import obstore
import pytest

from cynosure.common.errors import CynosureError
from cynosure.delegation.jobs.compaction.job import CompactionJob
from cynosure.delegation.jobs.expiry.job import ExpiryJob
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from cynosure.iceberg.partitioning import PartitionSpec
from tests.delegation.spark.world import Lake

SECRETS = ("${env:PATH}", "${system:java.io.tmpdir}", "${spark.sql.catalog.cynosure.credential}")


def make(lake: Lake, name: str) -> None:
    """Make a table of this name with two snapshots, without Spark having a say in the name."""
    plain = f"plain_{uuid.uuid4().hex[:8]}"
    lake.sql(
        f"CREATE TABLE c.ns.{plain} (id BIGINT, data STRING) USING iceberg",
        f"INSERT INTO c.ns.{plain} VALUES (1, 'a')",
        f"INSERT INTO c.ns.{plain} VALUES (2, 'b')",
    )
    rename(lake, plain, name)


def rename(lake: Lake, old: str, new: str) -> None:
    body: dict[str, Any] = {
        "source": {"namespace": ["ns"], "name": old},
        "destination": {"namespace": ["ns"], "name": new},
    }
    url = f"{lake.served.url}/tables/rename"
    answer = httpx.post(url, json=body, auth=lake.served.login, timeout=30, trust_env=False)
    assert answer.status_code in (200, 204), answer.text


def test_a_name_with_a_variable_in_it_is_not_another_tables(local_lake: Lake):
    lake, victim = local_lake, f"victim_{uuid.uuid4().hex[:8]}"
    make(lake, victim)
    # A variable that nobody has set is nothing: what would be left is the victim's name.
    thief = victim + "${spark:zz}"
    make(lake, thief)
    before = lake.load(("ns", victim))["metadata"]["snapshots"]

    done = lake.work(ExpiryJob(), ("ns", thief), older_than="2099-01-01T00:00:00Z", retain_last="1")

    assert lake.load(("ns", victim))["metadata"]["snapshots"] == before
    assert (done.details["snapshots_before"], done.details["snapshots_after"]) == (2, 1)
    lake.work(CompactionJob(), ("ns", thief), rewrite_all="true")
    assert lake.load(("ns", victim))["metadata"]["snapshots"] == before


def test_an_odd_name_is_only_a_name(local_lake: Lake):
    name = f"it's `odd` \\ \"x' , older_than => TIMESTAMP '2099-01-01{uuid.uuid4().hex[:8]}"
    make(local_lake, name)

    done = local_lake.work(CompactionJob(), ("ns", name), rewrite_all="true")

    assert (done.details["files_before"], done.details["files_after"]) == (2, 1)
    assert done.details["snapshots_after"] == 3


def test_no_instruction_tells_what_the_driver_knows(local_lake: Lake):
    name = f"t_{uuid.uuid4().hex[:8]}"
    make(local_lake, name)

    for secret in SECRETS:
        for given in ({"where": f"`{secret}` = 1"}, {"sort_order": f"`{secret}`"}):
            with pytest.raises(CynosureError) as failed:
                local_lake.work(CompactionJob(), ("ns", name), rewrite_all="true", **given)
            # It is an unknown column, called as it is written.
            assert secret in str(failed.value)


def forge(lake: Lake, thief: str, path: str) -> None:
    """Commit a snapshot whose manifest names a file of somebody else, as any writer of the table could."""
    loaded = lake.load(("ns", thief))
    metadata = loaded["metadata"]
    schema = metadata["schemas"][0]
    number = metadata["last-sequence-number"] + 1
    kind = ManifestKind(2, PartitionSpec((), 0), (), b"[]", json.dumps(schema).encode(), 0)
    content = ContentFile(
        path=path, format="parquet", spec_id=0, partition=(), record_count=1, file_size_bytes=700
    )
    manifest, listed = (f"{metadata['location']}/metadata/made-up-{each}.avro" for each in "ml")
    data, line = write_manifest(
        kind, [Entry(Status.ADDED, 5, None, None, content)], path=manifest, snapshot_id=5
    )
    list_data, _, _ = write_manifest_list(
        [line], format_version=2, snapshot_id=5, parent_snapshot_id=None, sequence_number=number
    )
    assert lake.store is not None
    for place, body in ((manifest, data), (listed, list_data)):
        obstore.put(lake.store.open_bucket(), place.removeprefix(f"s3://{lake.store.bucket}/"), body)
    snapshot = {
        "snapshot-id": 5,
        "parent-snapshot-id": metadata["current-snapshot-id"],
        "sequence-number": number,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "summary": {"operation": "append"},
        "manifest-list": listed,
        "schema-id": schema["schema-id"],
    }
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5}
    answer = httpx.post(
        f"{lake.served.url}/namespaces/ns/tables/{thief}",
        json={"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}, main]},
        auth=lake.served.login,
        timeout=30,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text


def test_a_forged_manifest_reads_and_deletes_nothing_of_others(s3_lake: Lake):
    lake, thief, victim = s3_lake, f"thief_{uuid.uuid4().hex[:8]}", f"victim_{uuid.uuid4().hex[:8]}"
    make(lake, victim)
    make(lake, thief)
    place = lake.load(("ns", victim))["metadata"]["location"]
    before = lake.list_files(place)
    forge(lake, thief, next(each for each in before if each.endswith(".parquet")))

    with pytest.raises(CynosureError):
        lake.work(CompactionJob(), ("ns", thief), rewrite_all="true")
    lake.sql(f"DELETE FROM c.ns.{thief}")
    with suppress(CynosureError):
        lake.work(ExpiryJob(), ("ns", thief), older_than="2099-01-01T00:00:00Z", retain_last="1")

    assert lake.list_files(place) == before
    assert lake.sql(f"SELECT count(*) FROM c.ns.{victim}") == [(2,)]
    assert lake.sql(f"SELECT count(*) FROM c.ns.{thief}") == [(0,)]
