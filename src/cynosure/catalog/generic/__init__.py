"""Generic tables: tables of any other format, of which the catalog knows where they are and who may use them.

- `create_generic_table.py`, `load_generic_table.py`, `list_generic_tables.py`, `drop_generic_table.py`
- `access.py`        credentials for its base location

There is no update: what changes in such a table changes in its files. Names are shared with tables and views.

Must not break: access is given to the base location only, and only while the table has claimed it.
"""
