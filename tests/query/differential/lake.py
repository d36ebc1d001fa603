"""TPC-H in a catalog, twice: as it is, behind policies; and a copy of what its reader may see."""

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, StringType

from cynosure.client.tls import NO_TLS
from cynosure.testing.admin import Admin, Grant
from cynosure.testing.query_server import QueryScene
from tests.query.differential.rules import PRIORITIES, RULES, apply_rule
from tests.query.differential.written import (
    append_pieces,
    commit_deletes,
    write_equality,
    write_positions,
    write_vector,
)
from tests.query.local.tpch import make_tpch

SEED = 20_261_116
STEWARD = "steward"
"""The role of those who see everything."""
SPARSE = ("c_mktsegment", "c_comment", "l_returnflag", "l_commitdate", "o_comment", "o_orderpriority",
          "o_clerk", "p_brand", "s_phone")  # fmt: skip
"""Columns in which a row of twenty has NULL. TPC-H itself has none."""


def make_data(folder: Path) -> dict[str, pa.Table]:
    """All rows, before deletes."""
    chance = random.Random(SEED)
    tables = make_tpch(folder)
    tables["things"] = make_things(chance)
    for name in tables:
        table = tables[name]
        for column in sorted(set(SPARSE) & set(table.column_names)):
            values = [None if chance.random() < 0.05 else value for value in table.column(column).to_pylist()]
            place = table.schema.get_field_index(column)
            table = table.set_column(
                place, table.schema.field(place), pa.array(values, table.schema.field(place).type)
            )
        tables[name] = table
    return tables


def make_things(chance: random.Random, count: int = 400) -> pa.Table:
    """Types and values that TPC-H does not have."""

    def moment() -> datetime:
        return datetime(1950, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(3 * 10**15))

    makers: dict[str, tuple[pa.DataType, Callable[[], Any]]] = {
        "t_small": (pa.int32(), lambda: chance.choice([0, 1, -1, 2**31 - 1, -(2**31)])),
        "t_flag": (pa.bool_(), lambda: chance.random() < 0.3),
        "t_real": (pa.float32(), lambda: chance.choice([0.5, -0.0, 0.0, math.nan, math.inf, 3.25])),
        "t_twice": (pa.float64(), lambda: chance.choice([49.5, 50.0, -0.0, 0.0, math.nan, -math.inf, 1e308])),
        "t_seen": (pa.timestamp("us"), lambda: moment().replace(tzinfo=None)),
        "t_zoned": (pa.timestamp("us", tz="UTC"), moment),
        "t_day": (pa.date32(), lambda: moment().date()),
        "t_raw": (pa.binary(), lambda: chance.choice([b"", b"\x00", b"\xff\x01", b"a"])),
        "t_text": (
            pa.string(),
            lambda: chance.choice(["", "a1", "Zürich 8", "\U0001f600x", "it's", "a\\b", "%_"]),
        ),
    }
    columns: dict[str, pa.Array] = {"t_id": pa.array(range(count), pa.int64())}
    for name, (type_, make) in makers.items():
        columns[name] = pa.array([None if chance.random() < 0.15 else make() for _ in range(count)], type_)
    return pa.table(columns)


def write_lake(scene: QueryScene, data: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Write them as `tpch.*`; the rows that are left after deletes, with the columns of today."""
    writer = _Writer(scene)
    return {
        name: getattr(writer, f"write_{name}", writer.write_plainly)(name, table)
        for name, table in data.items()
    }


class _Writer:
    def __init__(self, scene: QueryScene) -> None:
        self._scene = scene
        self._catalog = scene.pyiceberg()
        self._chance = random.Random(SEED)

    def write_plainly(self, name: str, table: pa.Table) -> pa.Table:
        made = self._catalog.create_table(f"tpch.{name}", schema=table.schema)
        append_pieces(made, split(table, 2))
        return table

    def write_lineitem(self, name: str, table: pa.Table) -> pa.Table:
        """A column renamed, one added, positions deleted before and after."""
        first, second, third, last = split(table, 4)
        old = {"l_shipmode": "l_mode"}
        earlier = [
            each.rename_columns([old.get(column, column) for column in each.column_names])
            for each in (first, second)
        ]
        made = self._catalog.create_table(f"tpch.{name}", schema=earlier[0].schema)
        paths = append_pieces(made, earlier)
        gone = [self._choose(first), self._choose(second)]
        self._delete(made, name, write_positions(made, pairs(paths, gone)))
        with made.update_schema() as change:
            change.rename_column("l_mode", "l_shipmode")
            change.add_column("l_note", StringType())
        later = [
            each.append_column(
                "l_note", pa.array([f"note {at % 7}" for at in range(each.num_rows)], pa.string())
            )
            for each in (third, last)
        ]
        paths = append_pieces(made, later)
        gone += [self._choose(third)]
        self._delete(made, name, write_positions(made, pairs(paths, gone[2:])))
        notes = [
            each.append_column("l_note", pa.nulls(each.num_rows, pa.string())) for each in (first, second)
        ]
        return without([*notes, *later], [*gone, []])

    def write_orders(self, name: str, table: pa.Table) -> pa.Table:
        """A type made wider, and deletion vectors."""
        place = table.schema.get_field_index("o_shippriority")
        wide = table.set_column(place, "o_shippriority", table.column(place).cast(pa.int64()))
        pieces = split(table, 3)
        made = self._catalog.create_table(f"tpch.{name}", schema=table.schema)
        paths = append_pieces(made, pieces[:2])
        with made.update_schema() as change:
            change.update_column("o_shippriority", field_type=LongType())
        paths += append_pieces(made, split(wide, 3)[2:])
        gone = [self._choose(each) for each in pieces]
        self._delete(
            made, name, *(write_vector(made, path, chosen) for path, chosen in zip(paths, gone, strict=True))
        )
        return without(split(wide, 3), gone)

    def write_partsupp(self, name: str, table: pa.Table) -> pa.Table:
        """Equality deletes; what is appended later stays."""
        earlier, later = split(table, 2)
        made = self._catalog.create_table(f"tpch.{name}", schema=table.schema)
        append_pieces(made, split(earlier, 2))
        keys = [3, 50, 77]
        self._delete(made, name, write_equality(made, "ps_suppkey", keys))
        made.append(later)
        gone = [at for at, key in enumerate(earlier.column("ps_suppkey").to_pylist()) if key in keys]
        return without([earlier, later], [gone, []])

    def write_customer(self, name: str, table: pa.Table) -> pa.Table:
        """Partitions, one of them of NULL."""
        made = self._catalog.create_table(f"tpch.{name}", schema=table.schema)
        with made.update_spec() as change:
            change.add_field("c_mktsegment", IdentityTransform())
        for each in split(table, 2):
            made.append(each)
        return table

    def _choose(self, table: pa.Table) -> list[int]:
        return sorted(self._chance.sample(range(table.num_rows), table.num_rows // 30))

    def _delete(self, table: Any, name: str, *files: Any) -> None:
        lake = self._scene.lake
        with httpx.Client(auth=lake.login, trust_env=False, timeout=30, verify=NO_TLS) as http:
            commit_deletes(http, f"{lake.url}/namespaces/tpch/tables/{name}", table, *files)


def split(table: pa.Table, count: int) -> list[pa.Table]:
    """In pieces of about the same size."""
    share = -(-table.num_rows // count)
    return [table.slice(at * share, share) for at in range(count)]


def pairs(paths: list[str], gone: list[list[int]]) -> list[tuple[str, int]]:
    return [(path, each) for path, chosen in zip(paths, gone, strict=False) for each in chosen]


def without(pieces: list[pa.Table], gone: list[list[int]]) -> pa.Table:
    """All pieces, without these rows."""
    kept = []
    for piece, chosen in zip(pieces, gone, strict=True):
        deleted = set(chosen)
        kept.append(piece.take([at for at in range(piece.num_rows) if at not in deleted]))
    return pa.concat_tables(kept)


async def restrict_lake(scene: QueryScene) -> None:
    """The policies, for all but stewards, and the mapping table that only the gateway reads."""
    async with scene.catalog.client() as http:
        await Admin(http).create_role(STEWARD)
    rows = [(user, each) for user, some in PRIORITIES.items() for each in some]
    await scene.make_table(
        "gov.priorities",
        pa.table({"user": [each[0] for each in rows], "priority": [each[1] for each in rows]}),
    )
    await scene.grant_gateway(Grant("TABLE_READ_DATA", ("gov",)))
    but = {"except-roles": [STEWARD]}
    for name, rule in RULES.items():
        if rule.filter:
            await scene.restrict(f"tpch.{name}", filter=rule.filter, **but)
        if rule.masks:
            await scene.restrict(f"tpch.{name}", columns=dict(rule.masks), **but)


async def make_steward(scene: QueryScene, name: str) -> None:
    """Somebody for whom nothing is hidden."""
    async with scene.catalog.client() as http:
        await Admin(http).assign_role(name, STEWARD)


async def copy_lake(scene: QueryScene, rows: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """`copy.*`: what the reader may see, physically; its rows."""
    seen = {name: apply_rule(table, RULES[name]) for name, table in rows.items()}
    for name, table in seen.items():
        await scene.make_table(f"copy.{name}", *split(table, 2))
    return seen
