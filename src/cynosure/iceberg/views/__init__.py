"""Views: a query under a name, in one or more SQL dialects, with its history.

- `version.py`        one definition of a view, and what makes it valid
- `metadata.py`       a view's metadata as one immutable value; `parse.py` and `encode.py`: from and to JSON
- `updates.py`        the updates of the protocol, one struct each
- `apply.py`          what each of them does; `draft.py` is the view while they do it
- `retention.py`      how much history is kept
- `requirements.py`   what a client may require of a view before its updates are applied

A maintainer must not break: versions are never changed, only added and, when there are too many, forgotten; a
version's JSON stays byte for byte what its writer sent, except for the ids that the catalog assigns.
"""

from cynosure.iceberg.views.apply import apply_view_updates, new_view
from cynosure.iceberg.views.encode import encode_view
from cynosure.iceberg.views.metadata import ViewMetadata
from cynosure.iceberg.views.parse import parse_view
from cynosure.iceberg.views.requirements import (
    ViewRequirement,
    check_view_requirements,
    decode_view_requirements,
)
from cynosure.iceberg.views.updates import ViewUpdate, decode_view_updates
from cynosure.iceberg.views.version import ViewVersion, read_version

__all__ = [
    "ViewMetadata",
    "ViewRequirement",
    "ViewUpdate",
    "ViewVersion",
    "apply_view_updates",
    "check_view_requirements",
    "decode_view_requirements",
    "decode_view_updates",
    "encode_view",
    "new_view",
    "parse_view",
    "read_version",
]
