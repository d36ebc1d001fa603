"""Run a server in the foreground and let nothing of it outlive the script that started it."""

import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType


def run_until_stopped(command: Sequence[str], environment: Mapping[str, str], folder: str | Path) -> int:
    """Wait until the command ends or this process is told to; the exit code, 0 when told to."""
    is_told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_told
        is_told = True
        process.terminate()

    with subprocess.Popen(command, env=dict(environment), cwd=folder) as process:
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        code = process.wait()
    return 0 if is_told else code


def wait_for_port(port: int, process: subprocess.Popen[bytes], timeout_s: float = 20) -> None:
    """Return when the port accepts connections; fail when the process ends first."""
    give_up_s = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > give_up_s:
                raise SystemExit(f"nothing listens on port {port}") from None
            time.sleep(0.1)
        else:
            return
