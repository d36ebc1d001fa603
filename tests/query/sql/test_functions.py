"""The list of functions: they are Spark's, they are safe, and they come out as they went in."""

from pathlib import Path

import pytest
from sqlglot.errors import SqlglotError

from cynosure.query.sql.dialect import DIALECT, TYPED_FUNCTIONS
from cynosure.query.sql.functions import ALLOWED, GENERATORS, SESSION_FUNCTIONS, TABLE_FUNCTIONS
from cynosure.query.sql.nodes import PARTS

SPARK = frozenset((Path(__file__).parent / "spark_functions.txt").read_text().split())
"""`SHOW FUNCTIONS` of Spark 4.1.4."""

SYNTAX = {"timestampadd", "timestampdiff"}
"""Functions of Spark's grammar, which it does not list."""

DANGEROUS = {
    *("reflect", "java_method", "try_reflect", "input_file_name", "input_file_block_start"),
    *("input_file_block_length", "spark_partition_id", "monotonically_increasing_id", "version"),
    *("python_worker_logs", "from_avro", "from_protobuf", "aes_encrypt", "aes_decrypt", "uuid", "rand"),
}


def test_all_are_functions_of_spark() -> None:
    assert ALLOWED | TABLE_FUNCTIONS <= SPARK | SYNTAX
    assert TYPED_FUNCTIONS <= ALLOWED
    assert GENERATORS | SESSION_FUNCTIONS <= ALLOWED


def test_none_can_do_anything_but_compute() -> None:
    assert not ALLOWED & DANGEROUS
    assert DANGEROUS <= SPARK


ARGUMENTS = ["a", "'x'", "1", "NULL", "a + 1", "DATE '2020-01-01'"]


@pytest.mark.parametrize(
    "name", sorted(ALLOWED - {"if", "any", "position", "substr", "trim", "overlay", "extract"})
)
def test_calls_come_out_as_they_went_in(name: str) -> None:
    seen = 0
    for number in range(5):
        for first in range(3):
            arguments = [ARGUMENTS[(first + at) % len(ARGUMENTS)] for at in range(number)]
            text = f"SELECT {name.upper()}({', '.join(arguments)})"
            try:
                [tree] = DIALECT.parse(text)
                assert tree is not None
                if any(
                    part not in PARTS.get(type(node).__name__, ())
                    for node in tree.walk()
                    for part, value in node.args.items()
                    if value not in (None, False, [])
                ):
                    continue  # refused: a number of arguments that there is no function for
                written = tree.sql(dialect="spark")
            except SqlglotError:
                continue
            assert written == text.replace("DATE '2020-01-01'", "CAST('2020-01-01' AS DATE)")
            seen += 1
    assert seen
