"""Whether a client asks for access to a table's files along with the table (`X-Iceberg-Access-Delegation`).

Must not break: asking for it never gives less than not asking: what a value means that is not known here is
not guessed.
"""

from typing import Any, Final

from cynosure.api.messages import Request
from cynosure.catalog.file_access.modes import NOT_ASKED, Delegation

_NAME: Final = "X-Iceberg-Access-Delegation"
_HEADER: Final = _NAME.lower().encode("ascii")
_VENDED: Final = frozenset({"vended-credentials", "true"})
"""`true` is how Apache Polaris spells vended-credentials."""
DESCRIBED: Final[dict[str, Any]] = {
    _NAME: {"type": "array", "items": {"type": "string", "enum": ["vended-credentials", "remote-signing"]}}
}
"""The header as routes describe it: a list with commas."""


def delegation_of(request: Request) -> Delegation:
    """The ways of access that are asked for and exist."""
    text = request.find_header(_HEADER)
    if text is None:
        return NOT_ASKED
    wanted = {each.strip().lower() for each in text.split(",")}
    return Delegation(vended=not wanted.isdisjoint(_VENDED), signing="remote-signing" in wanted)
