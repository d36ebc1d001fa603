"""The files of tables: where they may lie, reading and writing them, and giving clients access to them.

Read in this order (README.md says what is promised):

- `location.py`      one typed location for every place; equality, containment, path tricks refused
- `resolve.py`       a location as a person wrote it, links resolved
- `config.py`        the storage configuration of a catalog, with its keys sealed; `check_config.py`
- `fileio.py`        the contract: whole files, create-only writes; kit: `cynosure.testing.fileio_kit`
- `backends/`        memory (the specification), local files, S3, Google, Azure; `object_files.py` is what the
                     last three have in common
- `access/`          what clients are given to reach files themselves: credentials, signatures
- `decorators/`      what is around every storage: bounds, metrics, log
- `opened.py`        all that one storage gives: files, credentials, a signer
- `open_storage.py`  from a configuration to that, pooled; one `open_….py` per cloud
- `as_client.py`     files as a client reaches them that got such access, for checks
- `open_vended.py`   files by the properties that a client is given, renewed in time: for long work
- `unnamed.py`       what lies in a place and has no name: markers of directories, links

A maintainer must not break: storages are reached with what the catalog's configuration says, or what an
operator's settings give to it by name, and only inside its allowed locations.
"""
