"""A few rows that fit on a page, and who sees what of them; for the texts in `cases/`.

people: rows of the EU and one's own; auditors see all rows. ssn shows its last four, born its year,
        salary 0 (not to payroll), email which are equal.
sales:  items that `gov.items` names for the reader.
notes:  a struct: `inner.secret` is NULL, `inner.open` is as it is. Without rows of the hidden.
"""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

from cynosure.testing.admin import Admin
from cynosure.testing.login import Credential
from cynosure.testing.query_server import QueryScene

moment = datetime.fromisoformat
PEOPLE = pa.Table.from_pylist(
    [
        {"id": 1, "login": "ann", "name": "Ann Lee", "region": "EU", "ssn": "123-45-6789",
         "salary": Decimal("100.00"), "born": date(1980, 5, 17), "email": "ann@x.org", "boss": None},
        {"id": 2, "login": "bob", "name": "Bob Ray", "region": "US", "ssn": "987-65-4321",
         "salary": Decimal("200.50"), "born": date(1975, 12, 31), "email": "bob@x.org", "boss": 1},
        {"id": 3, "login": "zoe", "name": "Zoë Ünal", "region": "EU", "ssn": "55",
         "salary": None, "born": None, "email": "ann@x.org", "boss": 1},
        {"id": 4, "login": "dan", "name": "Dan O'Hara", "region": None, "ssn": None,
         "salary": Decimal("50.00"), "born": date(2001, 1, 1), "email": None, "boss": 2},
        {"id": 5, "login": "eve", "name": "Eve", "region": "EU", "ssn": "Ж11-22-3333",
         "salary": Decimal("300.00"), "born": date(1969, 7, 20), "email": None, "boss": 3},
        {"id": 6, "login": "fay", "name": "Fay Kim", "region": "APAC", "ssn": "555-66-7777",
         "salary": Decimal("75.25"), "born": date(1990, 10, 10), "email": "fay@x.org", "boss": 5},
    ],
    schema=pa.schema(
        {"id": pa.int64(), "login": pa.string(), "name": pa.string(), "region": pa.string(),
         "ssn": pa.string(), "salary": pa.decimal128(10, 2), "born": pa.date32(), "email": pa.string(),
         "boss": pa.int64()}
    ),
)  # fmt: skip
SALES = pa.Table.from_pylist(
    [
        {"id": 1, "person": 1, "item": "tea", "amount": 3, "at": moment("2026-01-31T10:30:00")},
        {"id": 2, "person": 2, "item": "cup", "amount": 7, "at": moment("2026-02-01T00:00:00")},
        {"id": 3, "person": 5, "item": "tea", "amount": None, "at": moment("2025-12-31T23:59:59")},
        {"id": 4, "person": 6, "item": "pot", "amount": 0, "at": moment("2026-03-03T00:00:00")},
        {"id": 5, "person": 3, "item": "cup", "amount": 2, "at": None},
        {"id": 6, "person": 3, "item": None, "amount": 1, "at": None},
    ],
    schema=pa.schema(
        {"id": pa.int64(), "person": pa.int64(), "item": pa.string(), "amount": pa.int32(),
         "at": pa.timestamp("us")}
    ),
)  # fmt: skip
ITEMS = pa.table(
    {"reader": ["ann", "bob", "bob", "carl"], "item": pa.array(["tea", "tea", "cup", None], pa.string())}
)
NOTES = pa.Table.from_pylist(
    [
        {"id": 1, "inner": {"secret": "s1", "open": "o1"}, "tags": ["a", "b"], "score": 0.5},
        {"id": 2, "inner": None, "tags": None, "score": float("nan")},
        {"id": 3, "inner": {"secret": None, "open": "o3"}, "tags": [], "score": -0.0},
        {"id": 4, "inner": {"secret": "s4", "open": None}, "tags": ["b", None], "score": None},
    ],
    schema=pa.schema(
        {
            "id": pa.int64(),
            "inner": pa.struct({"secret": pa.string(), "open": pa.string()}),
            "tags": pa.list_(pa.string()),
            "score": pa.float64(),
        }
    ),
)


async def fill_small(scene: QueryScene) -> dict[str, Credential]:
    """Tables, policies, readers."""
    users = {name: await scene.create_user(name) for name in ("bob", "carl", "pam")}
    async with scene.catalog.client() as http:
        admin = Admin(http)
        for role, name in (("auditor", "carl"), ("payroll", "pam")):
            await admin.create_role(role)
            await admin.assign_role(name, role)
    await scene.make_table("small.people", PEOPLE.slice(0, 2), PEOPLE.slice(2, 3), PEOPLE.slice(5))
    await scene.make_table("small.sales", SALES.slice(0, 3), SALES.slice(3))
    await scene.make_table("small.notes", NOTES)
    await scene.make_table("gov.items", ITEMS)
    people = "small.people"
    await scene.restrict(
        people, filter="region = 'EU' OR login = current_user()", **{"except-roles": ["auditor"]}
    )
    await scene.restrict(people, columns={"ssn": "show-last-4", "born": "truncate-to-year"})
    await scene.restrict(people, columns={"email": "sha-256-query-local"})
    await scene.restrict(people, columns={"salary": "mask-to-fixed-value"}, **{"except-roles": ["payroll"]})
    await scene.restrict(
        "small.sales",
        filter="EXISTS (SELECT 1 FROM gov.items m WHERE m.reader = current_user() AND m.item = item)",
    )
    await scene.restrict("small.sales", columns={"at": "truncate-to-month"})
    await scene.restrict(
        "small.notes", columns={"inner.secret": "replace-with-null", "tags": "replace-with-null"}
    )
    await scene.restrict("small.notes", filter="score < 1 OR id = 4")
    return users
