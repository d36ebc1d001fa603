"""The files of tables: where they may lie, and reading and writing them.

Read in this order (README.md says what is promised):

- `location.py`      one typed location for every place; equality, containment, path tricks refused
- `resolve.py`       a location as a person wrote it, links resolved
- `config.py`        the storage configuration of a catalog, with its keys sealed
- `fileio.py`        the contract: whole files, create-only writes; kit: `cynosure.testing.fileio_kit`
- `backends/`        memory (the specification), local files, S3
- `open_fileio.py`   from a configuration to a pooled FileIO

A maintainer must not break: storages are reached with what the catalog's configuration says and nothing else,
and only inside its allowed locations.
"""
