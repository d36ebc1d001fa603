"""Reading settings: frozen structs, one file, the environment, the command line, nothing else.

A room declares a frozen struct with `forbid_unknown_fields`, a default and a docstring per field, and
receives it in a constructor; `cynosure.server.settings` composes the structs and is the only caller
of `read_settings`. Read in this order: `values.py` (what a field may hold), `sources.py` (where
values come from), `reader.py` (how they meet).

A maintainer must not break: no error of this package shows a value, because it may be a secret that
stands in the wrong place.
"""

from cynosure.common.settings.reader import Aliases, read_settings
from cynosure.common.settings.sources import Source, read_environment, read_file, read_overrides
from cynosure.common.settings.values import ByteSize, Duration, DurationOrZero, Texts

__all__ = [
    "Aliases",
    "ByteSize",
    "Duration",
    "DurationOrZero",
    "Source",
    "Texts",
    "read_environment",
    "read_file",
    "read_overrides",
    "read_settings",
]
