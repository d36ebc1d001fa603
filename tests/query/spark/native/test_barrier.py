"""Nothing that a statement does tells of a hidden row or a masked value: by errors, plans, logs or files.

Each probe fires where nothing is hidden: it would tell.
"""

import asyncio
import base64
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import obstore
import pyarrow as pa
import pytest
from msgspec.structs import replace

from cynosure.query.engine import Relation
from cynosure.query.errors import QueryFailed
from cynosure.query.scan_task import Credentials, Mask, ScanTask
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.scan_kit import reference, task_from_arrow
from tests.query.faults.searching import spell
from tests.query.spark.native.world import to_relation
from tests.query.spark.world import Sparks, statement
from tests.storage.test_open_vended import give

PEOPLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "region": ["EU", "EU", "zebra-region"],
        "ssn": ["1", "2", "x-hidden-x"],
        "n": pa.array([1, 2, 0], pa.int32()),
    }
)
PROBES = {
    "division in WHERE": "SELECT count(*) FROM cyn_0 WHERE 1 / n > 0",
    "cast in WHERE": "SELECT count(*) FROM cyn_0 WHERE CAST(ssn AS INT) > 0",
    "raise_error in SELECT": "SELECT CASE WHEN ssn LIKE 'x%' THEN raise_error(ssn) ELSE id END FROM cyn_0",
    "assert_true": "SELECT assert_true(ssn <> 'x-hidden-x') FROM cyn_0",
    "overflow": "SELECT max(IF(n = 0, 9223372036854775807, 0) + id) FROM cyn_0",
    "array index": "SELECT max(array(1, 2)[n - 1]) FROM cyn_0",
    "date": "SELECT max(to_date(concat('200', ssn), 'yyyy')) FROM cyn_0",
    "join": "SELECT count(*) FROM cyn_0 a JOIN cyn_0 b ON a.id = b.id AND 1 / b.n > 0",
    "group": "SELECT 1 / n, count(*) FROM cyn_0 GROUP BY 1 / n",
    "order": "SELECT id FROM cyn_0 ORDER BY 1 / n",
    "having": "SELECT region FROM cyn_0 GROUP BY region HAVING 1 / min(n) > 0",
    "window": "SELECT sum(1 / n) OVER (ORDER BY id) FROM cyn_0",
    "filter of an aggregate": "SELECT count(*) FILTER (WHERE 1 / n > 0) FROM cyn_0",
    "correlated": (
        "SELECT 1 FROM cyn_0 a WHERE EXISTS (SELECT 1 FROM cyn_0 b WHERE b.id = a.id AND 1 / b.n > 0)"
    ),
    "implicit cast, greater": "SELECT count(*) FROM cyn_0 WHERE ssn > 5",
    "implicit cast, in": "SELECT count(*) FROM cyn_0 WHERE ssn IN (5, 6)",
    "implicit cast, between": "SELECT count(*) FROM cyn_0 WHERE ssn BETWEEN 1 AND 9",
}
# Mapping tables arrive as a list of constants.
FILTERS = {"scalar": reference("eq", 2, "EU"), "list": reference("in", 2, ["EU", "US", "zebra-other"])}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Relation]]:
    directory = tmp_path_factory.mktemp("people")
    base = task_from_arrow(directory, PEOPLE, files=2)
    made = {"none": to_relation(base, directory)}
    for name, each in FILTERS.items():
        made[name] = to_relation(replace(base, row_filter=msgspec.json.encode(each)), directory)
    masks = (Mask(3, "mask-to-fixed-value"),)
    made["masked"] = to_relation(replace(base, masks=masks), directory)
    return made


SHARE = 1 if "CYNOSURE_SOAK_GOVERNED" in os.environ else 3


@pytest.mark.parametrize("probe", [*PROBES][::SHARE])
def test_errors_tell_nothing(natives: Sparks, people: dict[str, Relation], probe: str):
    with pytest.raises(QueryFailed) as failed:
        natives.table(PROBES[probe], people["none"])
    assert "hidden" not in str(failed.value)
    for name in FILTERS:
        natives.table(PROBES[probe], people[name])


def test_masked_columns_are_compared_as_they_are_shown(natives: Sparks, people: dict[str, Relation]):
    sql = "SELECT count(*) FROM cyn_0 WHERE ssn = 'x-hidden-x' OR ssn LIKE 'x-h%'"
    assert natives.rows(sql, people["none"]) == [(1,)]
    assert natives.rows(sql, people["masked"]) == [(0,)]
    raising = "SELECT CASE WHEN ssn LIKE 'x-%' THEN raise_error(ssn) END FROM cyn_0"
    with pytest.raises(QueryFailed):
        natives.rows(raising, people["none"])
    assert natives.rows(raising, people["masked"]) == [(None,)] * 3
    assert natives.rows("SELECT min(ssn), max(ssn) FROM cyn_0", people["masked"], columns=("a", "b")) == [
        ("XXXXXXXX", "XXXXXXXX")
    ]


def upload(server: S3Server, directory: Path, **others: Any) -> Relation:
    """The same table in a store, with credentials for its place only."""
    task: ScanTask = task_from_arrow(directory, PEOPLE, **others)
    place = Location.parse(server.fresh_location("native"))
    bucket = server.open_bucket()

    def put(path: str, data: bytes) -> None:
        obstore.put(bucket, "/".join(Location.parse(path).segments), data)

    files = []
    for file in task.files:
        path = place.child(Path(file.path).name).text
        put(path, Path(file.path).read_bytes())
        files.append(replace(file, path=path))
    properties = asyncio.run(give(server, place, writable=False))
    task = replace(
        task, files=tuple(files), places=(place.text,), file_roots=(), credentials=Credentials(1, properties)
    )
    return to_relation(task, place.text, put=put)


def test_secrets_stay_where_they_are(natives: Sparks, sts_server: S3Server, event_log: Path, tmp_path: Path):
    """Spark's event log, what it writes to disk, and the plans that it shows. If planted, all is found."""
    given = upload(
        sts_server,
        tmp_path,
        row_filter=reference("in", 2, ["EU", "zebra-constant"]),
        masks={"ssn": "sha-256-query-local"},
    )
    before = len(read_all(event_log))
    sql = "SELECT a.id, b.ssn FROM cyn_0 a JOIN cyn_0 b ON a.id = b.id WHERE a.n > 0 ORDER BY 1"
    assert len(natives.rows(sql, given, columns=("a", "b"))) == 2
    plan = natives.loop.run(natives.engine.explain(statement(sql, given, columns=("a", "b"))))
    assert "Scan cyn_0" in plan
    [task] = given.fragments
    assert isinstance(task, ScanTask)
    properties = task.credentials.properties
    secrets: list[str | bytes] = [
        properties["s3.secret-access-key"],
        properties["s3.session-token"],
        properties["s3.access-key-id"],
        "zebra-constant",
        "zebra-region",
        "x-hidden-x",
        task.salt,
        Location.parse(task.places[0]).segments[-1],
    ]
    assert all(secrets)
    driver = natives.engine.driver
    assert driver is not None
    assert not find(secrets, plan.encode())
    assert not find(secrets, Path(f"/proc/{driver.pid}/cmdline").read_bytes())
    # Events are written behind the statement.
    deadline = time.monotonic() + 60
    log = ""
    while ENDED not in log or "cyn_0" not in log:
        assert time.monotonic() < deadline, "no events were written"
        time.sleep(0.2)
        log = read_all(event_log)[before:].decode()
    assert not find(secrets, log.encode())
    assert not find(secrets, read_all(driver.scratch))
    planted = [(driver.scratch / "planted", each) for each in secrets] + [(event_log / "planted", secrets[0])]
    for place, secret in planted:
        plain = secret.encode() if isinstance(secret, str) else secret
        place.write_bytes(b"..." + base64.b64encode(b"ab" + plain + b"c"))
        try:
            # What else is in the log are other tests' rows.
            assert find([secret], read_all(place.parent)) == [secret]
        finally:
            place.unlink()
    settings = next(line for line in read_all(event_log).decode().splitlines() if ENVIRONMENT in line)
    assert json.loads(settings)["Spark Properties"]["spark.io.encryption.enabled"] == "true"


ENDED = '"Event":"SparkListenerJobEnd"'
ENVIRONMENT = '"Event":"SparkListenerEnvironmentUpdate"'


def read_all(directory: Path) -> bytes:
    """All that is written there, but for jars and checksums."""
    found = []
    for each in sorted(directory.rglob("*")):
        # What Spark has removed, or named anew, meanwhile is not there any more.
        with suppress(FileNotFoundError):
            if each.is_file() and each.suffix not in (".jar", ".crc"):
                found.append(each.read_bytes())
    return b"".join(found)


def find(secrets: list[str | bytes], content: bytes) -> list[str | bytes]:
    return [each for each in secrets if any(written in content for written in spell(each))]


def test_wrong_credentials_are_a_clean_error(natives: Sparks, sts_server: S3Server, tmp_path: Path):
    """Not those of the machine, and no text of the store."""
    given = upload(sts_server, tmp_path)
    [task] = given.fragments
    assert isinstance(task, ScanTask)
    wrong = {**task.credentials.properties, "s3.secret-access-key": "wrong"}
    bad = msgspec.structs.replace(given, fragments=(replace(task, credentials=Credentials(2, wrong)),))
    with pytest.raises(StorageRefused) as failed:
        natives.rows("SELECT id FROM cyn_0", bad)
    assert task.places[0] not in str(failed.value)
    assert "wrong" not in str(failed.value)
    assert natives.rows("SELECT count(*) FROM cyn_0", given) == [(3,)]

    # The same driver reads it by scans that get others, and those are asked for first.
    async def renew() -> Credentials:
        return msgspec.structs.replace(task.credentials, number=3)

    isolated = natives.engine.renewing
    assert isolated is not None
    again = Sparks(natives.loop, isolated)  # type: ignore[arg-type]  # an engine as well
    assert again.rows("SELECT count(*) FROM cyn_0", msgspec.structs.replace(bad, renew=renew)) == [(3,)]
