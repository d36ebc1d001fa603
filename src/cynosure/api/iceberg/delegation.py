"""Whether a client asks for access to a table's files along with the table (`X-Iceberg-Access-Delegation`).

Must not break: asking for it never gives less than not asking: what a value means that is not known here is
not guessed.
"""

from typing import Final

from cynosure.api.messages import Request

_HEADER: Final = b"x-iceberg-access-delegation"
_KNOWN: Final = frozenset({"vended-credentials", "remote-signing", "true"})
"""`true` is how Apache Polaris spells vended-credentials."""


def is_delegated(request: Request) -> bool:
    """Whether any way of access that exists is asked for."""
    wanted = request.find_header(_HEADER)
    return wanted is not None and any(each.strip().lower() in _KNOWN for each in wanted.split(","))
