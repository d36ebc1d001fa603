"""How the remotes of federated catalogs are, and what to do about one that is not well."""

from collections.abc import Iterable

from msgspec import Struct

from cynosure.cli.connection_flags import name_connection_flag
from cynosure.cli.output import tell


class RemoteState(Struct, frozen=True, rename="camel"):
    """The server's answer about one remote."""

    catalog: str
    connection_type: str = ""
    uri: str = ""
    reachable: bool = False
    problem: str | None = None
    reason: str | None = None
    field: str | None = None
    fix: str | None = None
    breaker: str = ""
    retry_after_ms: int = 0
    running: int = 0
    waiting: int = 0
    failures: int = 0
    last_success_ms: int = 0
    last_failure_ms: int = 0
    last_error: str | None = None


def tell_troubles(states: Iterable[RemoteState]) -> None:
    """Say of each remote that is not well what is wrong, and what to do about it."""
    for each in states:
        if each.reachable or each.reason is None:
            continue
        flag = None if each.field is None else name_connection_flag(each.field) or each.field
        tell(f"{each.catalog}: {each.reason}" + ("" if flag is None else f" ({flag})"))
        if each.fix is not None:
            tell(f"Fix: {each.fix}")
