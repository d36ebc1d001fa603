"""DuckDB in the gateway's own process, over governed batches, for queries that it answers like Spark.

- `lower.py`            Spark's tree ─► DuckDB's text with Spark's types and failures, or the reason why not;
                        with `sources.py` (FROM), `expressions.py`, `operators.py`, `functions.py`,
                        `dates.py`, `aggregates.py`; names by `scope.py`, types by `spark_types.py`
- `typed.py`            what lowering gives: text with Spark's type; `context.py` what it needs throughout;
                        `canonical.py` calls as the nodes they are, `arguments.py` what they are given
- `naming.py`           columns that a statement does not name, as Spark calls them
- `fallible.py`         what can fail on a row is asked in the order of the statement
- `exact.py`            functions that DuckDB does not have exactly: division of decimals, letters, rounding
- `database.py`         DuckDB, locked down
- `relation_stream.py`  fragments of a relation as an Arrow stream; `ready_batches.py` what waits in it,
                        `run.py` the state they share, `left_scans.py` threads that a statement left behind
- `engine.py`           an `Engine`; `failures.py` what DuckDB says, as errors without values

What is inside of the subset is what tests/query/local compares with Spark.

A maintainer must not break: a query that is not inside the tested common subset is not run here; and DuckDB
reaches nothing but the batches: no files, no network, no settings.
"""
