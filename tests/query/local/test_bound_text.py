"""What binding makes of a statement means the same to Spark, and its columns have the names that Spark gives.

Names of results come from the binder where it knows them: another order there is values under wrong names.
"""

import pytest
from sqlglot import exp

from cynosure.query.local.engine import LocalEngine
from cynosure.query.sql.bound import BoundQuery
from cynosure.query.sql.dialect import WRITTEN
from tests.query.local.comparing import explain_difference
from tests.query.local.spark_side import SparkSide
from tests.query.local.test_against_spark import answer, read_lines
from tests.query.local.world import Tables, bind_text, fields_of, make_query

pytestmark = pytest.mark.timeout(600)
STATEMENTS = read_lines("bound.txt")
PARTS = 4


def text_for_spark(bound: BoundQuery, tables: Tables) -> str:
    """With tables in place of relations, and of each no more than the statement was found to need."""
    tree = bound.tree.copy()
    needs = {each.view: each for each in bound.needs}
    for node in list(tree.find_all(exp.Table)):
        need = needs.get(node.name)
        if need is not None:
            names = [each.name for each in fields_of(need, tables)]
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name))
            query = exp.select(*names or ["1"], dialect="spark").from_(need.mention.parts[-1])
            node.replace(exp.Subquery(this=query, alias=alias.copy()))
    return tree.sql(dialect=WRITTEN)


def find_difference(sql: str, engine: LocalEngine, spark: SparkSide, tables: Tables) -> str | None:
    """Between a statement and what was bound of it; and the local engine's answer, if it has one."""
    bound = bind_text(sql, tables)
    wanted, found = spark.run(sql), spark.run(text_for_spark(bound, tables))
    names = [each or one for each, one in zip(bound.columns, found.column_names, strict=False)]
    if len(names) == wanted.num_columns and names != wanted.column_names:
        return f"names {names}, of Spark {wanted.column_names}"
    if engine.find_reason_against(make_query(sql, tables)) is None:
        local = answer(engine, sql, tables)
        difference = explain_difference(local, wanted, is_ordered="order by" in sql)
        if difference or local.column_names != wanted.column_names:
            return f"local: {difference or local.column_names}"
    return explain_difference(found, wanted, is_ordered="order by" in sql)


@pytest.mark.parametrize("part", range(PARTS))
def test_statements(part: int, engine: LocalEngine, spark_side: SparkSide, tables: Tables) -> None:
    wrong = {
        sql: difference
        for sql in STATEMENTS[part::PARTS]
        if (difference := find_difference(sql, engine, spark_side, tables)) is not None
    }
    assert not wrong
