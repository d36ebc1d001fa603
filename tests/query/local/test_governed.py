"""The local engine over real scans: hidden rows and masked values cannot be observed by what fails (I101)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from cynosure.query.engine import EngineQuery
from cynosure.query.errors import QueryFailed
from cynosure.query.local.engine import LocalEngine
from cynosure.testing.scan_kit import reference, task_from_arrow
from tests.query.local.world import collect, make_query

pytestmark = pytest.mark.anyio
TABLE = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "divisor": pa.array([1, 2, 0, 4, 2_147_483_647, 5], pa.int32()),
        "ssn": ["111", "222", "hidden", "444", "also-hidden", "555"],
    }
)
HIDING: dict[str, Any] = {
    "row_filter": {
        "type": "and",
        "left": reference("not-eq", 1, 2),
        "right": reference("not-eq", 1, 4),
    }
}
PROBES = (
    "select 10 / divisor from t",
    "select id from t where 10 / divisor > 1",
    "select 1 % divisor from t",
    "select divisor + 1 from t",
    "select sum(10 / divisor) from t",
    "select id from t order by 10 / divisor",
    "select 10 / divisor as q, count(*) from t group by 10 / divisor",
    "select x.id from t x join t y on 10 / x.divisor = y.id",
    "select max(10 / divisor) over (order by id) from t",
    "select sum(divisor) filter (where 10 / divisor > 0) from t",
    "select id from t where exists (select 1 from t u where 10 / u.divisor > t.id)",
    "select case when 10 / divisor > 1 then 1 end from t",
    "select count(*) from t group by divisor having 10 / divisor > 0",
)


def scanned(sql: str, folder: Path, governed: Mapping[str, Any]) -> EngineQuery:
    """The statement over files of `TABLE`, each mention governed by itself."""
    query = make_query(sql, {"t": TABLE})
    relations = []
    for relation in query.relations:
        names = [each.name for each in relation.columns]
        task = task_from_arrow(folder / relation.view, TABLE, columns=names, files=2, **governed)
        relations.append(msgspec.structs.replace(relation, fragments=(task,)))
    return msgspec.structs.replace(query, relations=tuple(relations))


@pytest.mark.parametrize("sql", PROBES)
async def test_hidden_rows_do_not_fail(sql: str, engine: LocalEngine, tmp_path: Path) -> None:
    with pytest.raises(QueryFailed):
        await collect(engine, scanned(sql, tmp_path / "open", {}))
    await collect(engine, scanned(sql, tmp_path / "governed", HIDING))
    await engine.close()


async def test_rows(engine: LocalEngine, tmp_path: Path) -> None:
    query = scanned(
        "select id, ssn from t order by id", tmp_path, {**HIDING, "masks": {"ssn": "mask-alphanum"}}
    )
    table = await collect(engine, query)
    assert table.column("id").to_pylist() == [0, 1, 3, 5]
    assert not set(table.column("ssn").to_pylist()) & set(TABLE.column("ssn").to_pylist())
    await engine.close()


async def test_masked_values_are_what_is_compared(engine: LocalEngine, tmp_path: Path) -> None:
    masked = {"masks": {"ssn": "replace-with-null"}}
    for sql in (
        "select count(*) as n from t where ssn = 'hidden'",
        "select count(*) as n from t x join t y on x.ssn = y.ssn",
        "select count(distinct ssn) as n from t",
        "select count(*) as n from t where ssn like 'h%' or length(ssn) = 6",
    ):
        table = await collect(engine, scanned(sql, tmp_path, masked))
        assert table.to_pylist() == [{"n": 0}], sql
    await engine.close()


async def test_only_the_number_of_rows(engine: LocalEngine, tmp_path: Path) -> None:
    table = await collect(engine, scanned("select count(*) as n from t", tmp_path, HIDING))
    assert table.to_pylist() == [{"n": 4}]
    await engine.close()
