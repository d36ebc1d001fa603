"""Iceberg's own rules, as pure functions: bytes in, values out.

The room knows table metadata of format versions 1 to 3, view metadata, types and expressions, what every
update and requirement of the REST protocol means, what hides rows and columns (`restrictions/`), the files of
a table (`manifests/`) and which of them a filter can match (`pruning/`). It does no I/O, reads no clock and
draws no random number, so the catalog, the query service and maintenance share one set of rules.

It promises:

- A JSON document is kept byte for byte, so fields that this version does not know survive at every depth.
- An update is applied without decoding the snapshots it does not touch; a table is encoded by joining JSON
  that was encoded before (`fragments.py`).
- What is refused is a `BadInput` that names the field; what the table's state forbids is a `Conflict`
  (`errors.py`).

Start with `metadata/table.py`, then `updates/__init__.py`.
"""
