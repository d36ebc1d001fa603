"""Which values of `--param` go with which statement: the gateway takes none that a statement does not name.

A maintainer must not break: a value that no statement names is sent, so that a mistyped name is told.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import structs

from cynosure.client.query import QuerySession

_NAMED: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?<!:):([A-Za-z_]\w*)""", re.DOTALL
)
"""A text, a name or a comment, which are passed over; or a parameter."""


def names_in(statements: Iterable[str]) -> frozenset[str]:
    """Of parameters, outside of texts and comments."""
    return frozenset(found[1] for each in statements for found in _NAMED.finditer(each) if found[1])


def choose_parameters(session: QuerySession, statement: str, named: frozenset[str]) -> QuerySession:
    """The session with the values that a statement names, and those that are not in `named`: by none."""
    if not isinstance(session.parameters, dict):
        return session
    own = names_in([statement])
    return structs.replace(
        session,
        parameters={
            name: value for name, value in session.parameters.items() if name in own or name not in named
        }
        or [],
    )
