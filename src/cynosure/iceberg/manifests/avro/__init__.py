"""Avro's object container files, as far as manifests need them: read without trust, written in one piece.

- `schema.py`      a writer's schema as values, bounded in depth and size
- `codecs.py`      blocks decompressed to a size that was set before (`snappy.py`)
- `container.py`   header and blocks of a file
- `decode.py`      readers, one made for each schema
- `encode.py`      writers, and the file around them

A maintainer must not break: every count and length in a file is checked against the bytes at hand before
anything is made from it. Files come from clients, and one of a kilobyte may say that it has 2**62 entries.
"""
