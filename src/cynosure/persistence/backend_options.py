"""Options of a backend: from the query of its URL and from the settings, in one namespace.

A maintainer must not break: no message repeats a value or an odd name, because a password with an
unescaped `?` or `&` ends up in the query.
"""

import re
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl

from cynosure.common.errors import Misconfigured

_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


def read_options(query: str, options: Mapping[str, str], *, known: Collection[str]) -> dict[str, str]:
    """Both sources as one mapping. Unknown names and contradictions are `Misconfigured`."""
    merged = dict(options)
    for name, value in parse_qsl(query, keep_blank_values=True):
        if merged.setdefault(name, value) != value:
            raise Misconfigured(
                "The database URL and the settings give different values for one option",
                fix="Keep the option in one place.",
                option=_shown(name),
            )
    for name in merged:
        if name not in known:
            raise Misconfigured(
                "The database has no such option",
                fix=f"Use only: {', '.join(sorted(known)) or '(this database has no options)'}. "
                "Write a ? or & inside a password or path as %3F or %26.",
                option=_shown(name),
            )
    return merged


def read_number(
    options: Mapping[str, str], name: str, default: float, *, lowest: float, highest: float
) -> float:
    """An option that is a number within bounds."""
    text = options.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    # Written so that NaN fails as well.
    if not lowest <= number <= highest:
        raise Misconfigured(
            "An option of the database is not a number within its bounds",
            fix=f"Give {name} a number from {lowest:g} to {highest:g}.",
            option=name,
        )
    return number


def _shown(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "(not a plain name)"
