"""Catalogs in a PostgreSQL database, with the tables of PyIceberg's SqlCatalog and Iceberg's JdbcCatalog.

`database.py` has connections and what their errors mean, `pointers.py` what a remote of pointers does.

A maintainer must not break: nothing is created or altered in that database but rows of its two tables. Where
they are missing, that is said.
"""

from cynosure.federation.remotes.sql.opening import open_sql

__all__ = ["open_sql"]
