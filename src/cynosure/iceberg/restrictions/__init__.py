"""What a principal may not see of a table: row filters and column masks, and how a reader is told.

- `contents.py`   the two kinds of policies from their JSON: whom they are for, and what they say
- `filter_sql.py` a filter written in SQL (`sql_text.py` its parser), `language.py` what it may be made of
- `mapping.py`    a part of a filter that asks another table
- `readers.py`    who reads: for whom a policy is meant; `resolving.py` a filter for one reader
- `binding.py`    a filter on the columns of a schema, ready to be sent
- `actions.py`    what can be done to a column: on which types, and which is the stricter
- `masking.py`    masks on the columns of a table
- `wire.py`       all of it as the `read-restrictions` of the REST protocol

A maintainer must not break: whatever cannot be understood exactly hides data or is refused. Nothing here ever
falls back to showing more.
"""
