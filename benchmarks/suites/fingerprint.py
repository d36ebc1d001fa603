"""Fingerprints of requests with an Idempotency-Key: CPU of one, beside that of decoding the same body once.

Bodies are commits as engines send them: 2 kB is usual, 50 kB has a hundred snapshots. One operation is:

- *fingerprint*: from the bytes of the body to the text that is compared
- *decode*: the same bytes into Python values by msgspec, which every request pays anyway
- *library*: decode, then everything else by `rfc8785`, as if speed did not matter

    ./dev bench fingerprint

A maintainer must not break: no two bodies in a row are the same, so nothing of one is kept for the next.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import cycle, islice
from typing import Any, Final

import msgspec
import rfc8785

from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, ratio
from benchmarks.results_file import Result
from cynosure.idempotency.fingerprint import fingerprint

SIZES: Final = {"2 kB": 4, "50 kB": 105}
"""Snapshots in a commit of that size."""
BOUND_RATIO: Final = 3.0


def name_of(what: str, size: str) -> str:
    """Name of a candidate."""
    return f"{what}, {size}"


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    count = options.get("bodies", 20_000)
    decode = msgspec.json.Decoder().decode
    candidates: dict[str, Round] = {}
    for size, snapshots in SIZES.items():
        some = [_commit(number, snapshots) for number in range(16)]
        times = max(1, count // snapshots)
        candidates[name_of("fingerprint", size)] = _measuring(fingerprint, some, times)
        candidates[name_of("decode", size)] = _measuring(decode, some, times)
        candidates[name_of("library", size)] = _measuring(_all_by_the_library, some, max(1, times // 20))
    yield candidates


def _all_by_the_library(body: bytes) -> str:
    return sha256(rfc8785.dumps(msgspec.json.decode(body))).hexdigest()


def _commit(number: int, snapshots: int) -> bytes:
    # Ids are within what the library takes; those of engines have some digits more.
    updates = [_add_snapshot(number * 1_000 + each) for each in range(snapshots)]
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
    return json.dumps(
        {
            "identifier": {"namespace": ["sales"], "name": "orders"},
            "requirements": [
                {"type": "assert-table-uuid", "uuid": "0190b1de-7c1c-7b3e-9d00-9b8f1ad2a111"},
                {
                    "type": "assert-ref-snapshot-id",
                    "ref": "main",
                    "snapshot-id": 8_051_729_675_574_597 - number,
                },
            ],
            "updates": [*updates, main],
        }
    ).encode()


def _add_snapshot(number: int) -> dict[str, Any]:
    return {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": 7_390_122_319_846_577 + number,
            "parent-snapshot-id": 3_051_729_675_574_597 + number,
            "sequence-number": number,
            "timestamp-ms": 1_763_242_342_000 + number,
            "manifest-list": f"s3://lake/warehouse/orders/metadata/snap-{number}-1-4c1b2c9e.avro",
            "summary": {
                "operation": "append",
                "spark.app.id": "local-1763242300",
                "added-data-files": "1",
                "added-records": "1000",
                "added-files-size": "23813",
                "total-records": str(1_000 * number),
            },
            "schema-id": 0,
        },
    }


def _measuring(once: Callable[[bytes], object], bodies: list[bytes], times: int) -> Round:
    async def run(meter: Meter) -> None:
        for body in bodies:
            once(body)
        asked = list(islice(cycle(bodies), times))
        with meter.measuring():
            for body in asked:
                once(body)
        meter.count(operations=times, bytes=sum(map(len, asked)))

    return run


def promises(result: Result) -> list[Promise]:
    """That a key costs about what decoding costs."""
    judged: list[Promise] = []
    for size in SIZES:
        own, decoded = name_of("fingerprint", size), name_of("decode", size)
        if has(result, own, decoded):
            judged.append(
                Promise(f"{own}: over decode", "≤", BOUND_RATIO, ratio(result, own, decoded, cpu_us))
            )
    return judged
