"""A catalog server that is served by another fork of this process whenever the last one was killed.

A maintainer must not break: this process has no event loop, no threads and nothing open, or its forks would
inherit them half-dead; and it ends when its child ends otherwise than by SIGKILL.
"""

import os
import signal
import sys
from types import FrameType

from cynosure.server.run import run_catalog
from cynosure.server.settings import SettingsSource


def rise_again(source: SettingsSource) -> int:
    """Serve until SIGTERM; the exit code of the last child."""
    child = 0

    def stop(number: int, frame: FrameType | None) -> None:
        if child:
            os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    while True:
        child = os.fork()
        if not child:
            _live(source)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            return os.waitstatus_to_exitcode(status)


def _live(source: SettingsSource) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    code = 1
    try:
        run_catalog(source, lambda ready: print(f"Catalog is ready at {ready.url}", flush=True))
        code = 0
    finally:
        # What went wrong is said before the process ends without any ceremony of its parent's.
        if code:
            sys.excepthook(*sys.exc_info())
        os._exit(code)
