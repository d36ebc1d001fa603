-- Statements that are allowed and can be bound to the tables of world.py; one per line.
SELECT 1
SELECT 1 AS a, 'x' AS b, TRUE, NULL, 1.5, 1e3, .5, 10L, 1.5D, 1.5BD, X'1F', -1, +1
SELECT * FROM t
SELECT t.* FROM t
SELECT * EXCEPT (id, name) FROM t
SELECT ID, Name FROM T
SELECT `id`, `T`.`name` FROM `t`
SELECT a.b.t.id FROM a.b.t
SELECT c.a.b.t.s.a FROM c.a.b.t
SELECT s.a, t.s.b, s.* FROM t
SELECT arr[0], m['x'], m.x, list_of_structs.a, list_of_structs[0].b FROM t
SELECT DISTINCT k FROM t
SELECT ALL k FROM t
SELECT id AS x, x + 1 AS y, y * 2 FROM t
SELECT id FROM t WHERE k = 1 AND name <> 'a' OR NOT flag
SELECT id FROM t WHERE name LIKE 'a%' AND name NOT LIKE '%b' AND name ILIKE 'C%' AND name RLIKE 'x' AND name REGEXP 'y'
SELECT id FROM t WHERE name LIKE ANY ('a', 'b') OR name LIKE ALL ('a%', '%b') OR name NOT LIKE ALL ('x', 'y')
SELECT id FROM t WHERE name LIKE 'a!%' ESCAPE '!'
SELECT id FROM t WHERE k IN (1, 2, 3) AND k NOT IN (4) AND (k, k) IN ((1, 2), (3, 4))
SELECT id FROM t WHERE k BETWEEN 1 AND 5 AND id NOT BETWEEN 2 AND 3
SELECT id FROM t WHERE k IS NULL OR name IS NOT NULL OR flag IS TRUE OR flag IS NOT FALSE OR flag IS UNKNOWN
SELECT id FROM t WHERE k <=> 1 AND k IS DISTINCT FROM id AND k IS NOT DISTINCT FROM 3
SELECT id FROM t WHERE id == 1 AND id != 2 AND id <> 3 AND NOT (id >= 4) AND !(id <= 5)
SELECT k + 1, k - 1, k * 2, k / 2, k DIV 2, k % 2, k & 1, k | 1, k ^ 1, ~k, -k, k << 1, k >> 1 FROM t
SELECT name || 'x', concat(name, 'y'), concat_ws(',', name, 'z') FROM t
SELECT CASE WHEN k = 1 THEN 'a' WHEN k = 2 THEN 'b' ELSE 'c' END, CASE k WHEN 1 THEN 2 END, if(flag, 1, 2) FROM t
SELECT CAST(k AS STRING), CAST(name AS INT), TRY_CAST(name AS DATE), k::bigint, CAST(price AS DECIMAL(10, 1)) FROM t
SELECT CAST(k AS TINYINT), CAST(k AS SMALLINT), CAST(k AS FLOAT), CAST(k AS DOUBLE), CAST(k AS BOOLEAN) FROM t
SELECT CAST(name AS BINARY), CAST(ts AS TIMESTAMP_NTZ), CAST(name AS TIMESTAMP), CAST(name AS VARCHAR(3)) FROM t
SELECT CAST(s AS STRUCT<a: BIGINT, b: STRING>), CAST(arr AS ARRAY<BIGINT>), CAST(m AS MAP<STRING, BIGINT>) FROM t
SELECT DATE '2020-01-31', TIMESTAMP '2020-01-31 10:00:00', TIMESTAMP_NTZ '2020-01-31 10:00:00'
SELECT DATE '2020-01-31' + INTERVAL '1' MONTH, day - INTERVAL 3 DAYS, ts + INTERVAL '1 02:03:04' DAY TO SECOND FROM t
SELECT INTERVAL '1-2' YEAR TO MONTH, INTERVAL 1 YEAR 2 MONTHS
SELECT 'it''s', 'it\'s', "double", 'a\nb', 'a\\b', r'a\d', '\u0041', 'é', '日本'
SELECT count(*), count(1), count(k), count(DISTINCT k), count(DISTINCT k, name), sum(k), avg(k), min(k), max(k) FROM t
SELECT sum(DISTINCT k), sum(k) FILTER (WHERE flag), count(*) FILTER (WHERE k > 1) FROM t
SELECT stddev(k), stddev_pop(k), stddev_samp(k), variance(k), var_pop(k), var_samp(k), corr(k, id), covar_pop(k, id) FROM t
SELECT percentile(k, 0.5), percentile_approx(k, 0.5), approx_percentile(k, array(0.5, 0.9), 100), median(k), mode(k) FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY k), percentile_disc(0.5) WITHIN GROUP (ORDER BY k DESC) FROM t
SELECT listagg(name, ',') WITHIN GROUP (ORDER BY name), string_agg(DISTINCT name, ';') FROM t
SELECT collect_list(k), collect_set(k), array_agg(name), first(k), last(k, true), any_value(k), max_by(name, k), min_by(name, k) FROM t
SELECT bool_and(flag), bool_or(flag), every(flag), some(flag), count_if(flag), bit_and(k), bit_or(k), bit_xor(k) FROM t
SELECT approx_count_distinct(k), skewness(k), kurtosis(k), regr_slope(k, id), histogram_numeric(k, 5) FROM t
SELECT first_value(k) IGNORE NULLS OVER (ORDER BY id), last_value(k) RESPECT NULLS OVER (ORDER BY id) FROM t
SELECT row_number() OVER (ORDER BY id), rank() OVER (PARTITION BY k ORDER BY id), dense_rank() OVER (ORDER BY k DESC) FROM t
SELECT ntile(4) OVER (ORDER BY id), lag(k) OVER (ORDER BY id), lead(k, 2, 0) OVER (ORDER BY id), nth_value(k, 2) OVER (ORDER BY id) FROM t
SELECT percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM t
SELECT sum(k) OVER (PARTITION BY name ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t
SELECT sum(k) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t
SELECT sum(k) OVER (ORDER BY day RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW) FROM t
SELECT sum(k) OVER w, avg(k) OVER w FROM t WINDOW w AS (PARTITION BY name ORDER BY id)
SELECT k, sum(id) FROM t GROUP BY k
SELECT k, sum(id) AS x FROM t GROUP BY k HAVING sum(id) > 1 AND x < 100
SELECT k AS kk, count(*) FROM t GROUP BY kk ORDER BY kk
SELECT k, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC
SELECT k, name, count(*), grouping(k), grouping_id(k, name) FROM t GROUP BY ROLLUP (k, name)
SELECT k, name, count(*) FROM t GROUP BY CUBE (k, name)
SELECT k, name, count(*) FROM t GROUP BY GROUPING SETS ((k, name), (k), ())
SELECT k, name, count(*) FROM t GROUP BY k, name WITH ROLLUP
SELECT k, name, count(*) FROM t GROUP BY ALL ORDER BY ALL
SELECT count(*) FROM t HAVING count(*) > 0
SELECT id FROM t ORDER BY k DESC NULLS LAST, name NULLS FIRST LIMIT 5 OFFSET 2
SELECT id FROM t ORDER BY k + 1, upper(name) LIMIT ALL
SELECT id AS z FROM t ORDER BY z, name
SELECT id FROM t SORT BY id
SELECT id FROM t DISTRIBUTE BY k SORT BY id
SELECT id FROM t CLUSTER BY id
SELECT t.id, u.uname FROM t JOIN u ON t.id = u.id
SELECT t.id FROM t INNER JOIN u ON t.id = u.id LEFT JOIN w ON w.id = u.id RIGHT OUTER JOIN u AS u2 ON u2.id = t.id
SELECT t.id FROM t FULL OUTER JOIN u ON t.id = u.id AND u.k > 3
SELECT t.id FROM t CROSS JOIN u
SELECT t.id FROM t, u WHERE t.id = u.id
SELECT id FROM t JOIN u USING (id)
SELECT id, k, name, uname FROM t NATURAL JOIN u
SELECT id FROM t LEFT SEMI JOIN u ON t.id = u.id
SELECT id FROM t LEFT ANTI JOIN u ON t.id = u.id AND u.k = 1
SELECT id FROM t SEMI JOIN u ON t.id = u.id
SELECT id FROM t ANTI JOIN u USING (id)
SELECT a.id, b.id FROM t a JOIN t b ON a.k = b.k WHERE a.id < b.id
SELECT t.id FROM (t JOIN u ON t.id = u.id) JOIN w ON w.id = t.id
SELECT x.id FROM (SELECT * FROM t) x
SELECT id FROM (SELECT id, k FROM t WHERE k > 1) WHERE k < 5
SELECT y.a FROM (SELECT id, k FROM t) AS y(a, b)
SELECT id FROM ((SELECT id FROM t))
WITH x AS (SELECT id FROM t) SELECT * FROM x
WITH x(a, b) AS (SELECT id, k FROM t), y AS (SELECT a FROM x) SELECT x.b, y.a FROM x JOIN y ON x.a = y.a
WITH t AS (SELECT id AS only_this FROM t) SELECT only_this FROM t
WITH x AS (WITH y AS (SELECT 1 AS z) SELECT z FROM y) SELECT z FROM x
WITH x AS (SELECT 1 AS q) SELECT * FROM x UNION ALL SELECT * FROM x
SELECT id FROM t WHERE id IN (SELECT id FROM u)
SELECT id FROM t WHERE id NOT IN (SELECT id FROM u WHERE u.k = t.k)
SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE u.id = t.id)
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k = 1)
SELECT id, (SELECT max(u.k) FROM u WHERE u.id = t.id) AS m2 FROM t
SELECT id FROM t WHERE k > (SELECT avg(k) FROM t)
SELECT id FROM t WHERE (id, k) IN (SELECT id, k FROM u)
SELECT id FROM t UNION SELECT id FROM u
SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY id LIMIT 3
SELECT id FROM t EXCEPT SELECT id FROM u
SELECT id FROM t MINUS SELECT id FROM u
SELECT id FROM t INTERSECT SELECT id FROM u
SELECT id FROM t EXCEPT ALL SELECT id FROM u INTERSECT ALL SELECT id FROM w
(SELECT id FROM t LIMIT 1) UNION ALL (SELECT id FROM u LIMIT 2)
(SELECT id FROM t) ORDER BY id LIMIT 1
SELECT x FROM t LATERAL VIEW explode(arr) e AS x
SELECT e.x, id FROM t LATERAL VIEW OUTER explode(arr) e AS x
SELECT p, x FROM t LATERAL VIEW posexplode(arr) e AS p, x
SELECT key, value FROM t LATERAL VIEW explode(m) e
SELECT a, b FROM t LATERAL VIEW inline(list_of_structs) e AS a, b
SELECT x, y FROM t LATERAL VIEW explode(arr) e AS x LATERAL VIEW explode(arr) f AS y
SELECT explode(arr) FROM t
SELECT explode(m) AS (kk, vv) FROM t
SELECT posexplode(arr) FROM t
SELECT inline(list_of_structs) FROM t
SELECT stack(2, 1, 2) FROM t
SELECT c0 FROM t LATERAL VIEW json_tuple(name, 'a') j AS c0
SELECT l.z FROM t, LATERAL (SELECT t.id + 1 AS z) l
SELECT l.z FROM t LEFT JOIN LATERAL (SELECT u.k AS z FROM u WHERE u.id = t.id) l ON TRUE
SELECT e.col FROM t, LATERAL explode(t.arr) AS e
SELECT r.id FROM range(5) r
SELECT * FROM range(1, 10, 2)
SELECT col FROM explode(array(1, 2, 3))
VALUES (1, 'a'), (2, 'b')
SELECT a, b FROM VALUES (1, 'a'), (2, 'b') AS v(a, b)
SELECT col1 FROM (VALUES (1), (2))
SELECT * FROM (SELECT k, name, price FROM t) PIVOT (sum(price) FOR name IN ('a', 'b'))
SELECT * FROM (SELECT k, name, price FROM t) PIVOT (sum(price) AS s, count(*) AS c FOR name IN ('a' AS x, 'b' AS y))
SELECT * FROM (SELECT id, k, dbl FROM t) UNPIVOT (val FOR col IN (k AS kk, dbl AS dd))
SELECT * FROM u UNPIVOT INCLUDE NULLS (val FOR col IN (k))
SELECT transform(arr, x -> x + 1), transform(arr, (x, i) -> x * i), filter(arr, x -> x > k), exists(arr, x -> x = id) FROM t
SELECT aggregate(arr, 0, (acc, x) -> acc + x), aggregate(arr, 0, (acc, x) -> acc + x, acc -> acc * k), reduce(arr, 0, (a, x) -> a + x) FROM t
SELECT transform(list_of_structs, x -> x.a), zip_with(arr, arr, (x, y) -> x + y), forall(arr, x -> x > 0) FROM t
SELECT map_filter(m, (k1, v) -> v > 1), transform_keys(m, (k1, v) -> upper(k1)), transform_values(m, (k1, v) -> v + 1) FROM t
SELECT array(1, 2), array_contains(arr, 1), size(arr), cardinality(arr), element_at(arr, 1), try_element_at(arr, 9), sort_array(arr), array_distinct(arr) FROM t
SELECT array_union(arr, arr), array_intersect(arr, arr), array_except(arr, array(1)), arrays_overlap(arr, arr), array_join(array('a'), ','), flatten(array(arr)), slice(arr, 1, 2) FROM t
SELECT array_max(arr), array_min(arr), array_position(arr, 1), array_remove(arr, 1), array_repeat('a', 2), array_append(arr, 1), array_insert(arr, 1, 5), array_compact(arr), sequence(1, 5), reverse(arr) FROM t
SELECT map('a', 1), map_keys(m), map_values(m), map_entries(m), map_from_arrays(array('a'), array(1)), map_concat(m, m), map_contains_key(m, 'a'), str_to_map('a:1') FROM t
SELECT struct(id, name), struct(id AS x, 2 AS y), named_struct('a', id), struct(*) FROM t
SELECT abs(k), ceil(dbl), ceil(dbl, 1), floor(dbl), round(dbl, 2), bround(dbl), sign(k), sqrt(4), power(2, 3), pow(2, 3), exp(1), ln(2), log(2, 8), log10(10), log2(8) FROM t
SELECT sin(1), cos(1), tan(1), asin(1), atan2(1, 2), degrees(1), radians(1), pi(), e(), mod(k, 2), pmod(k, 2), greatest(1, 2), least(1, 2), factorial(3), cbrt(8), hypot(3, 4) FROM t
SELECT hex(255), unhex('FF'), bin(5), conv('10', 2, 10), shiftleft(1, 2), shiftright(4, 1), bit_count(3), width_bucket(5.0, 0.0, 10.0, 5)
SELECT try_add(1, 2), try_subtract(1, 2), try_multiply(2, 3), try_divide(1, 0), try_mod(1, 0), try_sum(k), try_avg(k) FROM t
SELECT upper(name), lower(name), ucase(name), lcase(name), initcap(name), length(name), char_length(name), octet_length(name), reverse(name) FROM t
SELECT substring(name, 1, 2), substring(name FROM 2 FOR 3), substr(name, 2), left(name, 1), right(name, 1), split(name, ','), split_part(name, ',', 1), substring_index(name, '.', 1) FROM t
SELECT trim(name), trim(BOTH 'x' FROM name), trim(LEADING FROM name), ltrim(name), rtrim(name), btrim(name, 'x'), lpad(name, 5, ' '), rpad(name, 5), repeat(name, 2), space(3) FROM t
SELECT instr(name, 'a'), locate('a', name), locate('a', name, 2), position('a' IN name), position('a', name), replace(name, 'a', 'b'), translate(name, 'ab', 'cd'), overlay(name PLACING 'x' FROM 1 FOR 2) FROM t
SELECT regexp_replace(name, 'a', 'b'), regexp_extract(name, '(a)', 1), regexp_extract_all(name, '(a)', 1), regexp_like(name, 'a'), regexp_count(name, 'a'), regexp_instr(name, 'a'), regexp_substr(name, 'a') FROM t
SELECT startswith(name, 'a'), endswith(name, 'a'), contains(name, 'a'), ascii(name), chr(65), char(65), levenshtein(name, 'a'), soundex(name), find_in_set('a', 'a,b'), elt(1, 'a', 'b') FROM t
SELECT format_string('%s', name), printf('%d', k), format_number(k, 2), to_char(k, '999'), to_number('5', '9'), base64(CAST(name AS BINARY)), unbase64('YQ=='), encode(name, 'UTF-8'), decode(CAST(name AS BINARY), 'UTF-8') FROM t
SELECT md5(name), sha(name), sha1(name), sha2(name, 256), crc32(name), hash(name, k), xxhash64(name) FROM t
SELECT year(day), month(day), day(day), quarter(day), hour(ts), minute(ts), second(ts), dayofweek(day), dayofyear(day), weekofyear(day), weekday(day), extract(YEAR FROM day), date_part('year', day) FROM t
SELECT date_add(day, 1), date_sub(day, 1), datediff(day, DATE '2020-01-01'), datediff(DAY, day, ts), date_add(MONTH, 1, day), dateadd(DAY, 1, day), timestampadd(HOUR, 1, ts), timestampdiff(SECOND, ts, ts), add_months(day, 1), months_between(day, day) FROM t
SELECT last_day(day), next_day(day, 'MON'), trunc(day, 'MM'), date_trunc('month', ts), date_format(ts, 'yyyy-MM-dd'), to_date('2020-01-01'), to_date('01/2020', 'MM/yyyy'), to_timestamp('2020-01-01'), make_date(2020, 1, 1), make_timestamp(2020, 1, 1, 0, 0, 0) FROM t
SELECT from_unixtime(0), unix_timestamp(ts), to_unix_timestamp('2020-01-01', 'yyyy-MM-dd'), timestamp_seconds(1), unix_date(day), unix_seconds(ts), from_utc_timestamp(ts, 'Europe/Berlin'), to_utc_timestamp(ts, 'Europe/Berlin'), convert_timezone('UTC', 'Europe/Berlin', ts_ntz) FROM t
SELECT coalesce(k, 0), nvl(k, 0), nvl2(k, 1, 2), ifnull(k, 0), nullif(k, 0), isnull(k), isnotnull(k), nanvl(dbl, 0), zeroifnull(k), nullifzero(k), equal_null(k, 1), typeof(k) FROM t
SELECT from_json('{"a":1}', 'a INT'), to_json(s), get_json_object(name, '$.a'), json_array_length('[1]'), json_object_keys('{}'), schema_of_json('{"a":1}'), from_csv('1', 'a INT'), to_csv(s) FROM t
SELECT assert_true(k > 0), raise_error('no') FROM t
SELECT int(name), string(k), date(name), timestamp(name), double(name), bigint(name), boolean(name), decimal(name) FROM t
SELECT current_user(), current_user, user(), session_user(), current_catalog(), current_database(), current_schema(), current_timestamp(), current_timestamp, now(), current_date(), current_date, curdate(), localtimestamp(), current_timezone(), unix_timestamp()
SELECT window.start, window.end, count(*) FROM t GROUP BY window(ts, '1 day')
SELECT window(ts, '1 hour').start AS begin FROM t
SELECT id FROM t VERSION AS OF 5
SELECT id FROM t VERSION AS OF 'main' x WHERE x.k = 1
SELECT id FROM t FOR VERSION AS OF 7
SELECT id FROM t TIMESTAMP AS OF '2026-01-31 10:00:00'
SELECT id FROM t FOR SYSTEM_TIME AS OF '2026-01-31T10:00:00.5+02:00' AS x
SELECT id FROM t TIMESTAMP AS OF TIMESTAMP '2026-01-31 10:00:00'
SELECT id FROM t TIMESTAMP AS OF now() - INTERVAL 1 DAY AS x WHERE x.k = 1
SELECT t.id FROM t SYSTEM_TIME AS OF date_sub(current_date(), 1) JOIN u ON t.id = u.id
SELECT id FROM a.b.t.branch_x
SELECT /*+ BROADCAST(u) */ t.id FROM t JOIN u ON t.id = u.id
SELECT id /* a comment */ FROM t -- another
FROM t SELECT id WHERE k = 1
SELECT count(DISTINCT *) FROM u
SELECT id FROM t WHERE TRUE
SELECT 1 WHERE FALSE
SELECT v1.a, b FROM v1
SELECT * FROM v2 WHERE k = 2
SELECT uname FROM v3
SELECT x.uname FROM v2 x JOIN v3 y ON x.id = y.id
SELECT max(a) FROM a.b.v1 GROUP BY b
SELECT mask(name), mask(name, 'X', 'x', 'n') FROM t
SELECT count(if(flag, 1, NULL)), sum(CASE WHEN flag THEN k END) FROM t
SELECT t1.id FROM t t1 JOIN u ON t1.id = u.id AND t1.k = (SELECT max(w.id) FROM w)
SELECT id, sum(k) OVER (PARTITION BY name) AS total FROM t WHERE k > 0 ORDER BY total DESC
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY ts) AS r FROM t) WHERE r = 1
SELECT * FROM VALUES (1, 'x', 10), (2, 'y', 20) AS v(a, b, c) PIVOT (sum(c) FOR b IN ('x', 'y'))
SELECT * FROM VALUES (1, 10, 20) AS v(a, b, c) UNPIVOT (val FOR col IN (b, c AS cc)) ORDER BY val
SELECT trim(BOTH 'x' FROM 'xax'), substring('hello' FROM 2), extract(YEAR FROM '2020-01-01'), overlay('hello' PLACING 'XX' FROM 2)
SELECT count(*) FROM t WHERE name = 'a' AND (SELECT max(uname) FROM u WHERE u.id = t.id AND u.k = (SELECT min(w.id) FROM w WHERE w.id = t.k)) = 'x'
-- Names that SELECT gives, in ORDER BY, HAVING and GROUP BY.
SELECT s.a FROM t ORDER BY a
SELECT s.a, s.b FROM t ORDER BY b DESC, a NULLS LAST, id
SELECT t.s.a FROM t ORDER BY coalesce(a, 0) + 1
SELECT s.a, count(*) FROM t GROUP BY a HAVING a > 1 ORDER BY a
SELECT s.a, a + 1 AS n FROM t
SELECT s.a FROM t SORT BY a
SELECT s.* FROM t ORDER BY a
SELECT s.* EXCEPT (a) FROM t ORDER BY b
SELECT list_of_structs.a FROM t ORDER BY size(a)
SELECT t.id FROM t JOIN u ON t.id = u.id ORDER BY id
SELECT DISTINCT t.id FROM t JOIN u ON t.id = u.id ORDER BY id, t.id
SELECT t.k, count(*) FROM t JOIN u ON t.id = u.id GROUP BY t.k HAVING k > 0 ORDER BY k
SELECT t.* FROM t JOIN u ON t.id = u.id ORDER BY id
SELECT id, k AS id FROM u ORDER BY id
SELECT id, id FROM u ORDER BY id
SELECT id, explode(arr) FROM t ORDER BY id, col
SELECT count(*) FROM t ORDER BY `count(1)`
SELECT DISTINCT name AS n FROM t ORDER BY upper(n)
SELECT DISTINCT s FROM t ORDER BY s.a
SELECT DISTINCT t.k FROM t ORDER BY t.k
-- What analysts write.
SELECT * FROM t, u RIGHT JOIN w ON u.id = w.id
SELECT * FROM t, u FULL JOIN w ON u.id = w.id
SELECT * FROM t, u NATURAL JOIN w
SELECT * FROM u, w JOIN t USING (id)
SELECT * FROM w CROSS JOIN ((SELECT id FROM u) x JOIN w USING (id))
SELECT * FROM ((u JOIN w USING (id)) JOIN t USING (id))
SELECT x.id FROM ((SELECT id FROM u) x)
SELECT any(flag), any(flag) FILTER (WHERE k > 1) FROM t HAVING any(flag) = TRUE
VALUES (1, 2), (3, 4) ORDER BY col1 DESC LIMIT 1
SELECT * EXCEPT (s.a) FROM t
SELECT * EXCEPT (t.id) FROM t
SELECT session_window.start, count(*) FROM t GROUP BY session_window(ts, '10 minutes')
SELECT * FROM (WITH a AS (SELECT id FROM t) SELECT * FROM a) x JOIN (WITH a AS (SELECT id FROM u) SELECT * FROM a) y ON x.id = y.id
WITH a AS (SELECT 1 AS x) SELECT * FROM (WITH a AS (SELECT 2 AS x) SELECT * FROM a)
SELECT id, (WITH q AS (SELECT max(uname) AS m FROM u WHERE u.id = t.id) SELECT m FROM q) FROM t
SELECT DISTINCT CAST(k AS STRING), date(ts) FROM t ORDER BY k, ts
SELECT DISTINCT id FROM u JOIN w USING (id) ORDER BY u.id
SELECT t.id FROM t UNION SELECT id FROM u ORDER BY t.id
SELECT flag = k < id, 'a' || id + 1, k & 1 | id ^ 2, flag = k IS NULL, flag = k IN (TRUE), NOT flag = k BETWEEN 1 AND 5 FROM t
SELECT 1 FROM t JOIN u JOIN w LEFT JOIN t AS x SEMI JOIN u AS y ON x.id = y.id
