"""Whole tables: the gateway, another trusted engine and the copy have the same rows (I102)."""

from collections import Counter

import pyarrow as pa
import pytest

from tests.query.differential.rules import RULES
from tests.query.differential.trusted_engine import TrustedEngine
from tests.query.differential.world import Gateways

BY_PYICEBERG = ("lineitem", "customer", "supplier", "part", "nation", "region", "things")
"""Without `orders`, which a mapping table hides, and `partsupp`: PyIceberg reads no equality deletes."""


@pytest.fixture(scope="session")
def engine(gateways: Gateways) -> TrustedEngine:
    return gateways.loop.run(TrustedEngine.create(gateways.scene))


def count(table: pa.Table) -> Counter[str]:
    """Rows as texts: NaN equals itself, and the zeros differ."""
    return Counter(map(repr, zip(*(each.to_pylist() for each in table.columns), strict=True)))


@pytest.mark.parametrize("name", RULES)
def test_the_gateway_shows_the_rows_of_the_copy(name: str, gateways: Gateways) -> None:
    copy = gateways.seen[name]
    [found] = gateways.ask("local", "ann", "tpch", [f"SELECT * FROM {name}"])
    assert isinstance(found, pa.Table), found
    assert found.column_names == copy.column_names
    assert found.schema.types == copy.schema.types
    assert count(found) == count(copy)


@pytest.mark.parametrize("name", BY_PYICEBERG)
def test_another_trusted_engine_finds_the_same(name: str, gateways: Gateways, engine: TrustedEngine) -> None:
    copy = gateways.seen[name]
    found = engine.read(gateways.users["ann"], f"tpch.{name}")
    assert found.column_names == copy.column_names
    assert count(found) == count(copy)


def test_something_is_hidden_everywhere(gateways: Gateways, rows: dict[str, pa.Table]) -> None:
    """Else nothing was compared."""
    for name, rule in RULES.items():
        copy = gateways.seen[name]
        assert (copy.num_rows < rows[name].num_rows) == bool(rule.filter), name
        assert copy.num_rows > rows[name].num_rows // 4, name
        for column in rule.masks:
            assert count(copy.select([column])) != count(rows[name].select([column])), (name, column)


def test_it_gets_nothing_of_a_table_behind_a_mapping(gateways: Gateways, engine: TrustedEngine) -> None:
    answer = engine.load(gateways.users["ann"], "tpch.orders")
    assert answer.status_code == 403
    assert "SQL gateway" in answer.json()["error"]["message"]
