"""The files of a table: manifest lists and manifests, read, kept small in memory and written.

- `manifest_list.py`      the manifests of a snapshot
- `read_manifest.py`      a manifest's bytes into a `Manifest` (`manifest.py`): one packed column for each
  fact (`columns.py`, made by `packing.py`), column metrics among them (`metrics.py`)
- `content_file.py`       one file as a value; in JSON: `content_file_json.py`, many at once: `row_encoder.py`
- `bounds.py`             bounds: bytes and values
- `delete_index.py`       which delete files apply to a data file
- `statistics.py`         the live files of a snapshot, counted and measured
- `write_manifest.py`     both kinds of files as bytes, in the schemas of `avro_schemas.py`
- `repath.py`             both kinds of files with other paths, for files that are elsewhere now
- `avro/`                 the file format below

It promises: a file that cannot be read completely is an `InvalidManifest` that names it and the position, in
time and memory bounded by its size and `ReadLimits`; and what is written, every reader of Iceberg reads.
"""
