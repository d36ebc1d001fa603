"""How a child process ends: one line for its error, and an exit code its supervisor can trust."""

import sys
from collections.abc import Callable

from cynosure.common.errors import CynosureError


def run_child(name: str, main: Callable[[], None]) -> None:
    """Run the process' work. Errors of our tree are told in one line, others with their traceback."""
    try:
        main()
    except CynosureError as error:
        print(f"{name}: {error}", file=sys.stderr, flush=True)
        raise SystemExit(1) from None
