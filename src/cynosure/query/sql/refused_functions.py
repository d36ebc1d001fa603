"""What to write in place of a function that is not allowed, or that other dialects have."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from cynosure.query.sql.functions import ALLOWED

_LISTED: Final = "SHOW FUNCTIONS lists those that are."
_RANDOM: Final = "It gives another result each time. For some rows, sort by hash(column) and use LIMIT."
_NUMBERS: Final = "It tells how a table was read. Use row_number() OVER (ORDER BY …)."
_FILES: Final = "It tells where files are. Ask the metadata table of the table, t.files."
_VARIANT: Final = "Use get_json_object() or from_json()."
_KEYS: Final = "Keys do not belong into statements. Decrypt outside of them."
_SKETCH: Final = "Use approx_count_distinct(), percentile_approx(), or count(*) with GROUP BY."
_XML: Final = "Use regexp_extract()."

_INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("rand", "randn", "random", "randstr", "uniform", "shuffle"), _RANDOM),
    "uuid": "It gives another result each time. Use md5() or sha2() of columns.",
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id"), _NUMBERS),
    **dict.fromkeys(("input_file_name", "input_file_block_start", "input_file_block_length"), _FILES),
    **dict.fromkeys(("aes_encrypt", "aes_decrypt", "try_aes_decrypt"), _KEYS),
    **dict.fromkeys(("collate", "collation"), "Use lower() to compare without regard to case."),
    **dict.fromkeys(
        ("current_time", "make_time", "to_time", "try_to_time"), "Use date_format(ts, 'HH:mm:ss')."
    ),
    "version": "It tells about the machine.",
}
_FAMILIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("parse_json", "try_parse_json", "variant", "try_variant", "to_variant"), _VARIANT),
    **dict.fromkeys(("approx_top_k", "bitmap_", "count_min_", "hll_", "kll_", "theta_"), _SKETCH),
    **dict.fromkeys(("xpath", "from_xml", "to_xml", "schema_of_xml"), _XML),
}
"""By how their names begin."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    "approx_distinct": "approx_count_distinct(x)",
    "arbitrary": "any_value(x)",
    "array_length": "size(x)",
    "charindex": "locate(part, text)",
    "date_parse": "to_timestamp(text, format)",
    "datetrunc": "date_trunc('DAY', ts)",
    "generate_series": "explode(sequence(a, b))",
    "getdate": "current_timestamp()",
    "group_concat": "listagg(x, ',')",
    "iff": "if(condition, a, b)",
    "json_extract": "get_json_object(text, '$.path')",
    "json_extract_scalar": "get_json_object(text, '$.path')",
    "json_value": "get_json_object(text, '$.path')",
    "parse_date": "to_date(text, format)",
    "regexp_contains": "regexp_like(text, pattern)",
    "regexp_matches": "regexp_like(text, pattern)",
    "safe_cast": "try_cast(x AS type)",
    "safe_divide": "try_divide(a, b)",
    "strftime": "date_format(ts, format)",
    "strpos": "instr(text, part)",
    "struct_pack": "named_struct('a', x)",
    "sysdate": "current_timestamp()",
    "to_hex": "hex(x)",
    "unnest": "explode(x)",
}
"""Functions of other dialects."""


def suggest_instead(name: str) -> str:
    """What to do about a call of this function, which is not allowed."""
    lowered = name.lower()
    if lowered in _ELSEWHERE:
        return f"Write {_ELSEWHERE[lowered]}."
    if lowered in _INSTEAD:
        return _INSTEAD[lowered]
    for beginning, said in _FAMILIES.items():
        if lowered.startswith(beginning):
            return said
    near = get_close_matches(lowered, ALLOWED, n=2)
    return f"Did you mean {' or '.join(near)}?" if near else _LISTED
