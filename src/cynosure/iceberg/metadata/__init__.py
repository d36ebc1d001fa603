"""Table metadata: the value (`table.py`), from JSON (`parse.py`), to JSON (`encode.py`)."""

from cynosure.iceberg.metadata.encode import encode_head, encode_metadata
from cynosure.iceberg.metadata.log import with_previous_file
from cynosure.iceberg.metadata.parse import parse_metadata
from cynosure.iceberg.metadata.table import TableMetadata

__all__ = ["TableMetadata", "encode_head", "encode_metadata", "parse_metadata", "with_previous_file"]
