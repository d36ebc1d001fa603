"""The vault: tables with one hidden row each whose every value detonates, and copies without it.

    ns.plain        all rows, no policy                     what a control reads when nobody is restricted
    ns.copy         the shown rows, written as such         what a restricted reader's answer must equal
    ns.scalar, ns.listed, ns.mapped, ns.existing            all rows, under a filter of that kind
    ns.masked       all rows, every kind of mask            ns.masked_copy: the masked values, written as such
    ns.over_KIND    a view over such a table; ns.over_over_KIND a view over that

`mia` is restricted, `auditor` acts with the role that all policies except.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from cynosure.testing.admin import Grant
from cynosure.testing.login import Credential
from cynosure.testing.query_server import QueryScene

HIDDEN: Final = "hidden-value-7f3a"
"""In every text of the hidden row; no answer and no error to a restricted reader may hold it."""
MAX: Final = 2**63 - 1

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("region", pa.string()),
        pa.field("num", pa.string()),
        pa.field("divisor", pa.int32()),
        pa.field("big", pa.int64()),
        pa.field("day", pa.string()),
        pa.field("idx", pa.int32()),
        pa.field("items", pa.list_(pa.int32())),
        pa.field("js", pa.string()),
        pa.field("pattern", pa.string()),
        pa.field("wide", pa.decimal128(38, 0)),
        pa.field("amount", pa.float64()),
    ]
)
SHOWN: Final = [
    {
        "id": number,
        "region": "EU" if number % 2 else "UK",
        "num": str(number),
        "divisor": number,
        "big": number,
        "day": f"2024-01-{number:02}",
        "idx": 1,
        "items": [1, 2, 3],
        "js": '{"a": 1}',
        "pattern": "a+",
        "wide": number,
        "amount": float(number),
    }
    for number in range(1, 6)
]
BOMB: Final = {
    "id": 66,
    "region": f"XX {HIDDEN}",
    "num": HIDDEN,
    "divisor": 0,
    "big": MAX,
    "day": f"no day {HIDDEN}",
    "idx": 99,
    "items": [],
    "js": f'{{"a": {HIDDEN}',
    "pattern": f"({HIDDEN}",
    "wide": 10**38 - 1,
    "amount": float("nan"),
}

FILTERS: Final = {
    "scalar": "divisor <> 0",
    "listed": "region IN ('EU', 'UK')",
    "mapped": "region IN (SELECT m.region FROM ns.regions m WHERE m.who = current_user())",
    "existing": "EXISTS (SELECT 1 FROM ns.regions m WHERE m.who = current_user() AND m.region = region)",
}

PEOPLE: Final = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("ssn", pa.string()),
        pa.field("name", pa.string()),
        pa.field("phone", pa.string()),
        pa.field("salary", pa.int64()),
        pa.field("born", pa.date32()),
        pa.field("note", pa.string()),
        pa.field("home", pa.struct([pa.field("city", pa.string()), pa.field("zip", pa.string())])),
        pa.field("cards", pa.list_(pa.struct([pa.field("no", pa.string())]))),
        pa.field("code", pa.string()),
    ]
)
MASKS: Final = {
    "ssn": "show-last-4",
    "name": "mask-alphanum",
    "phone": "show-first-4",
    "salary": "mask-to-fixed-value",
    "born": "truncate-to-year",
    "note": "replace-with-null",
    "home.zip": "mask-to-fixed-value",
    "cards": "replace-with-null",
    "code": "sha-256-global",
}
_DAYS: Final = (7305, 7670, 8035)  # 1990-01-01, 1991-01-01, 1992-01-01


def people(*, is_masked: bool) -> pa.Table:
    """Three people, as they are or as the masks show them."""
    rows = []
    for number in range(1, 4):
        ssn, secret = f"{number}{number}1-22-000{number}", f"{HIDDEN}-{number}"
        rows.append(
            {
                "id": number,
                "ssn": f"nnn-nn-000{number}" if is_masked else ssn,
                "name": "xxxxxx-xxxxx-nxnx-n" if is_masked else secret,
                "phone": f"+49{number}xnnnnn" if is_masked else f"+49{number} 12345",
                "salary": 0 if is_masked else 1000 * number,
                "born": _DAYS[number - 1] if is_masked else _DAYS[number - 1] + 40 * number,
                "note": None if is_masked else secret,
                "home": {"city": f"city {number}", "zip": "XXXXXXXX" if is_masked else secret},
                "cards": None if is_masked else [{"no": secret}],
                "code": hashlib.sha256(secret.encode()).hexdigest() if is_masked else secret,
            }
        )
    return pa.Table.from_pylist(
        [{**row, "born": None} for row in rows],
        schema=PEOPLE,
    ).set_column(
        5, PEOPLE.field("born"), pa.array([row["born"] for row in rows], pa.int32()).cast(pa.date32())
    )


@dataclass
class Vault:
    """The tables, who reads them, and a gateway of each kind."""

    scene: QueryScene
    mia: Credential
    auditor: Credential
    snapshots: dict[str, int] = field(default_factory=dict)
    """Before the policies; also a branch `side` and a tag `before`."""

    def at(self, scene: QueryScene) -> "Vault":
        """The same, through another gateway."""
        return Vault(scene, self.mia, self.auditor, self.snapshots)


async def fill(scene: QueryScene) -> Vault:
    """Make everything."""
    shown, all_rows = (
        pa.Table.from_pylist(SHOWN, schema=SCHEMA),
        pa.Table.from_pylist([*SHOWN, BOMB], schema=SCHEMA),
    )
    mia = await scene.create_user("mia")
    auditor = await scene.create_user("auditor")
    snapshots: dict[str, int] = {}
    await scene.make_table("ns.copy", shown)
    await scene.make_table("ns.masked_copy", people(is_masked=True))
    regions = pa.table({"who": ["mia", "mia", "bob"], "region": ["EU", "UK", BOMB["region"]]})
    await scene.make_table("ns.regions", regions)
    for name in ("plain", *FILTERS):
        table = await scene.make_table(f"ns.{name}", all_rows)
        before = snapshots[name] = table.current_snapshot().snapshot_id
        named = table.manage_snapshots().create_branch(before, "side").create_tag(before, "before")
        await asyncio.to_thread(named.commit)
    table = await scene.make_table("ns.masked", people(is_masked=False))
    snapshots["masked"] = table.current_snapshot().snapshot_id
    except_: dict[str, Any] = {"except-roles": ["auditor_role"]}
    for name, condition in FILTERS.items():
        await scene.restrict(f"ns.{name}", filter=condition, **except_)
    await scene.restrict("ns.masked", columns=MASKS, **except_)
    await scene.grant_gateway(Grant("TABLE_READ_DATA"))
    await make_views(scene)
    return Vault(scene, mia, auditor, snapshots)


async def make_views(scene: QueryScene) -> None:
    """Views over views over each table with a filter, and over masked columns."""
    columns = {"id": "long", "num": "string", "divisor": "int"}
    for kind in FILTERS:
        inner = f"WITH c AS (SELECT * FROM {kind}) SELECT id, num, divisor FROM c"
        await make_view(scene, f"over_{kind}", inner, columns)
        outer = f"SELECT id, num, divisor FROM lake.ns.over_{kind} WHERE true"
        await make_view(scene, f"over_over_{kind}", outer, columns)
    renaming = "SELECT ssn AS public, salary AS points FROM masked"
    await make_view(scene, "renaming", renaming, {"public": "string", "points": "long"})
    await make_view(scene, "relation", "SELECT id FROM cyn_0", {"id": "long"})


async def make_view(scene: QueryScene, name: str, sql: str, columns: dict[str, str]) -> None:
    fields = [
        {"id": at, "name": each, "type": type_, "required": False}
        for at, (each, type_) in enumerate(columns.items(), 1)
    ]
    body = {
        "name": name,
        "schema": {"type": "struct", "schema-id": 0, "fields": fields},
        "properties": {},
        "view-version": {
            "version-id": 1,
            "schema-id": 0,
            "timestamp-ms": 1,
            "summary": {},
            "default-namespace": ["ns"],
            "default-catalog": "lake",
            "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
        },
    }
    async with scene.lake.client() as http:
        made = await http.post(f"{scene.lake.url}/namespaces/ns/views", json=body)
    assert made.is_success, made.text
