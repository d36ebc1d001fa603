"""What detonates on the hidden row, and where in a statement it may stand.

Each error is an expression over the columns of the vault's tables: harmless on the shown rows, failing on the
hidden one. Each place is a query around such an expression. What fails only as a whole (because two queries
get one type, a sum has one more row, or a query that may give one row gives two) is a statement. `{t}` is the
table.
"""

from typing import Final

ERRORS: Final = {
    "division": "100 DIV divisor",
    "quotient": "100 / divisor",
    "remainder": "100 % divisor",
    "cast": "CAST(num AS INT)",
    "implicit cast": "num + 1",
    "compared": "num > 5",
    "listed": "num IN (5, 6)",
    "between": "num BETWEEN 1 AND 9",
    "cast of a day": "CAST(day AS DATE)",
    "raised": "CASE WHEN divisor = 0 THEN raise_error(num) ELSE 1 END",
    "asserted": "nullif(if(assert_true(divisor <> 0) IS NULL, 1, 2), 2)",
    "asserted with a text": "nullif(if(assert_true(divisor <> 0, num) IS NULL, 1, 2), 2)",
    "overflow": "big + 1",
    "product": "big * 2",
    "narrow": "CAST(big AS INT)",
    "array": "items[idx]",
    "element": "element_at(items, idx)",
    "choice": "elt(idx, 'a', 'b')",
    "date": "to_date(day)",
    "timestamp": "to_timestamp(day, 'yyyy-MM-dd')",
    "month": "make_date(2024, divisor, 1)",
    "decimal": "CAST(big AS DECIMAL(10, 0))",
    "wide decimal": "CAST(wide AS DECIMAL(20, 0))",
    "number": "to_number(num, '999')",
    "json": "from_json(js, 'a INT', map('mode', 'FAILFAST')).a",
    "pattern": "regexp_like('aaa', pattern)",
    # Not their sizes: Spark knows without looking that those are not null.
    "duplicate key": "map_from_arrays(array('hidden-value-7f3a', num), array(1, 2))['hidden-value-7f3a']",
    "step": "array_max(sequence(1, 10, divisor))",
    "weekday": "next_day(DATE '2024-01-01', if(divisor = 0, num, 'MON'))",
    "zone": "convert_timezone(if(divisor = 0, num, 'UTC'), 'UTC', TIMESTAMP_NTZ '2024-01-01 00:00:00')",
    "bytes": "to_binary(if(divisor = 0, num, 'aa'), 'hex')",
    "from an address": "url_decode(if(divisor = 0, '%zz', 'a'))",
}
PLACES: Final = {
    "where": "SELECT count(*) AS v FROM {t} WHERE ({e}) IS NOT NULL",
    "where behind and": "SELECT id FROM {t} WHERE id > 0 AND region <> 'nowhere' AND ({e}) IS NOT NULL",
    "where before or": "SELECT id FROM {t} WHERE ({e}) IS NOT NULL OR id = 66",
    "where of a constant": "SELECT count(*) AS v FROM {t} WHERE id = 66 AND ({e}) IS NULL",
    "select": "SELECT id, {e} AS v FROM {t}",
    "distinct": "SELECT DISTINCT CAST({e} AS STRING) AS v FROM {t}",
    "join": "SELECT count(*) AS v FROM {t} JOIN (SELECT 1 AS one) o ON ({e}) IS NOT NULL AND id >= one",
    "left join": "SELECT count(*) AS v FROM (SELECT 1 AS one) o "
    "LEFT JOIN {t} ON ({e}) IS NOT NULL AND id >= one",
    "group": "SELECT count(*) AS v FROM {t} GROUP BY CAST({e} AS STRING)",
    "order": "SELECT id FROM {t} ORDER BY CAST({e} AS STRING), id",
    "having": "SELECT id FROM {t} GROUP BY id HAVING max(CAST({e} AS STRING)) IS NOT NULL",
    "case": "SELECT id, CASE WHEN ({e}) IS NOT NULL THEN 1 ELSE 0 END AS v FROM {t}",
    "window": "SELECT id, max(CAST({e} AS STRING)) OVER (ORDER BY id) AS v FROM {t}",
    "partition": "SELECT id, count(*) OVER (PARTITION BY CAST({e} AS STRING)) AS v FROM {t}",
    "filter": "SELECT count(*) FILTER (WHERE ({e}) IS NOT NULL) AS v FROM {t}",
    "aggregate": "SELECT max(CAST({e} AS STRING)) AS v, count(*) AS n FROM {t}",
    "correlated": "SELECT oid FROM (SELECT id AS oid FROM {t}) o WHERE EXISTS "
    "(SELECT 1 FROM {t} WHERE id >= oid AND ({e}) IS NOT NULL)",
    "scalar subquery": "SELECT (SELECT max(CAST({e} AS STRING)) FROM {t}) AS v",
    "lateral": "SELECT id, v FROM {t}, LATERAL (SELECT CAST({e} AS STRING) AS v)",
    "lateral view": "SELECT id, v FROM {t} LATERAL VIEW explode(array(CAST({e} AS STRING))) x AS v",
    "in": "SELECT count(*) AS v FROM {t} WHERE id IN (length(CAST({e} AS STRING)), id)",
    "in a subquery": "SELECT id FROM {t} WHERE CAST(id AS STRING) IN (SELECT CAST({e} AS STRING) FROM {t})",
    "common": "WITH c AS (SELECT id, CAST({e} AS STRING) AS v FROM {t}) "
    "SELECT a.id, a.v FROM c a JOIN c b ON a.v = b.v",
    "union": "SELECT CAST({e} AS STRING) AS v FROM {t} UNION SELECT 'x'",
    "pivot": "SELECT * FROM (SELECT id, CAST({e} AS STRING) AS v FROM {t}) PIVOT (max(v) FOR id IN (1, 66))",
}
WHOLE: Final = {
    "united with a number": "SELECT num FROM {t} UNION SELECT 1",
    "united with a number, all": "SELECT 1 AS v UNION ALL SELECT num FROM {t}",
    "united with a fraction": "SELECT num FROM {t} UNION SELECT 1.5D",
    "united with a decimal": "SELECT num FROM {t} UNION SELECT 1.25",
    "united with a day": "SELECT day FROM {t} UNION SELECT DATE '2024-01-01'",
    "intersected": "SELECT num FROM {t} INTERSECT SELECT id FROM {t} WHERE id < 9",
    "excepted": "SELECT id FROM {t} WHERE id < 9 EXCEPT SELECT num FROM {t}",
    "united in a common table": "WITH c AS (SELECT num AS v FROM {t} UNION SELECT 1) SELECT max(v) FROM c",
    "in numbers": "SELECT id FROM {t} WHERE num IN (SELECT id FROM {t} WHERE id < 9)",
    "joined with a number": "SELECT a.id FROM {t} a JOIN {t} b ON a.num = b.id",
    "sum": "SELECT sum(big) AS v FROM {t}",
    "sum of decimals": "SELECT sum(wide) AS v FROM {t}",
    "running sum": "SELECT id, sum(big) OVER (ORDER BY id) AS v FROM {t}",
    "one row": "SELECT (SELECT id FROM {t} WHERE id >= 5) AS v",
    "one row in where": "SELECT id FROM {t} WHERE id = (SELECT id FROM {t} WHERE divisor < 2)",
}
