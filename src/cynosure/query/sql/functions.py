"""Functions that statements may call: ordinary ones of Spark 4.1, by name.

Left out, and why:

    reflect, java_method, try_reflect           run any code
    input_file_name, input_file_block_*         tell where files are; engines have none anyway
    spark_partition_id, monotonically_increasing_id   tell how a scan was split, which depends on hidden rows
    version, python_worker_logs, sql_keywords, collations   tell about the machine
    rand, randn, random, randstr, uniform, uuid, shuffle   allowed with a seed only in Spark's own tests: two
                                                engines never agree on them, and a retried fragment would
                                                give other rows, so results could not be repeated
    from_avro, to_avro, from_protobuf, …        read schemas from files and registries
    aes_encrypt, aes_decrypt, try_aes_decrypt   keys do not belong into statements, which are recorded
    sketches (hll_*, kll_*, theta_*, approx_top_k*), variants, geometry, xml, TIME   not tested here
    collate, collation                          change what `=` means

A maintainer must not break: a name that is not on this list is refused, whatever Spark knows. Before a name
is added: it has no effect, reads nothing but its arguments, and says nothing about the machine.
"""

from typing import Final

_AGGREGATES: Final = (
    "any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and "
    "bool_or collect_list collect_set corr count count_if covar_pop covar_samp every first first_value "
    "grouping grouping_id histogram_numeric kurtosis last last_value listagg max max_by mean median min "
    "min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy "
    "regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev "
    "stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance"
)
_WINDOW: Final = "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number"
_MATH: Final = (
    "abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos "
    "cosh cot csc degrees e exp expm1 factorial floor getbit greatest hex hypot least ln log log10 log1p "
    "log2 mod negative pi pmod positive pow power radians rint round sec shiftleft shiftright "
    "shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply "
    "try_subtract unhex width_bucket"
)
_TEXT: Final = (
    "ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains elt "
    "encode decode endswith find_in_set format_number format_string ilike initcap instr is_valid_utf8 "
    "lcase left len length levenshtein like locate lower lpad ltrim luhn_check make_valid_utf8 mask "
    "octet_length overlay position printf quote regexp regexp_count regexp_extract regexp_extract_all "
    "regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rlike rpad rtrim "
    "sentences soundex space split split_part startswith substr substring substring_index to_binary "
    "to_char to_number to_varchar translate trim try_to_binary try_to_number try_validate_utf8 ucase "
    "unbase64 upper url_decode url_encode try_url_decode parse_url try_parse_url validate_utf8"
)
_HASH: Final = "crc32 hash md5 sha sha1 sha2 xxhash64"
_TIME: Final = (
    "add_months convert_timezone date date_add date_diff date_format date_from_unix_date date_part "
    "date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract "
    "from_unixtime from_utc_timestamp hour last_day make_date make_dt_interval make_interval "
    "make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month monthname "
    "months_between next_day quarter second timestamp timestamp_micros timestamp_millis timestamp_seconds "
    "timestampadd timestampdiff to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp "
    "to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz "
    "try_make_timestamp_ntz try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds "
    "unix_timestamp weekday weekofyear window window_time year session_window"
)
_NESTED: Final = (
    "aggregate array array_append array_compact array_contains array_distinct array_except array_insert "
    "array_intersect array_join array_max array_min array_position array_prepend array_remove "
    "array_repeat array_size array_sort array_union arrays_overlap arrays_zip cardinality element_at "
    "exists filter flatten forall get map map_concat map_contains_key map_entries map_filter "
    "map_from_arrays map_from_entries map_keys map_values map_zip_with named_struct reduce sequence size "
    "slice sort_array str_to_map struct transform transform_keys transform_values try_element_at zip_with"
)
_CONDITIONAL: Final = (
    "assert_true coalesce equal_null if ifnull isnan isnotnull isnull nanvl nullif nullifzero"
)
_MORE: Final = "nvl nvl2 raise_error typeof zeroifnull"
_CASTS: Final = "bigint binary boolean decimal double float int smallint string tinyint"
_JSON: Final = (
    "from_csv from_json get_json_object json_array_length json_object_keys schema_of_csv schema_of_json "
    "to_csv to_json"
)

SESSION_FUNCTIONS: Final = frozenset(
    [
        "current_user",
        "user",
        "session_user",
        "current_catalog",
        "current_database",
        "current_schema",
        "current_timestamp",
        "now",
        "current_date",
        "curdate",
        "localtimestamp",
        "current_timezone",
    ]
)
"""Literals are put in their place when a query is bound, so that all engines say the same."""

GENERATORS: Final = frozenset(
    [
        "explode",
        "explode_outer",
        "posexplode",
        "posexplode_outer",
        "inline",
        "inline_outer",
        "stack",
        "json_tuple",
    ]
)
"""Give several rows: behind LATERAL VIEW, as tables, and one in SELECT."""

TABLE_FUNCTIONS: Final = GENERATORS | {"range"}
"""As tables, in FROM."""

ALLOWED: Final = (
    frozenset(
        " ".join(
            (_AGGREGATES, _WINDOW, _MATH, _TEXT, _HASH, _TIME, _NESTED, _CONDITIONAL, _MORE, _CASTS, _JSON)
        ).split()
    )
    | GENERATORS
    | SESSION_FUNCTIONS
)
"""Anywhere else."""

CASTS: Final = frozenset(_CASTS.split()) | {"date", "timestamp"}
"""Types that are called as functions."""

UNIT_FIRST: Final = frozenset(
    ["dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff"]
)
"""With three arguments, the first is a unit of time and no column: `timestampdiff(day, a, b)`."""

UNITS: Final = frozenset(
    [
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "dayofyear",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    ]
)
