import subprocess
import sys

import pytest

from cynosure.common.errors import Misconfigured
from cynosure.server.link import SupervisorLink


def test_a_child_that_hangs_ends_with_its_supervisor_all_the_same() -> None:
    program = (
        "import signal, sys, time\n"
        "from cynosure.server.link import SupervisorLink\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "link = SupervisorLink.find()\n"
        "link.end_with_supervisor(grace_s=0.05)\n"
        "link.announce_ready('hangs')\n"
        "time.sleep(600)\n"
    )
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            pass_fds=[theirs.fileno()],
            env={"CYNOSURE_SUPERVISOR_FD": str(theirs.fileno())},
        )
        theirs.close()
        assert ours.recv(100) == b'"hangs"\n'

    assert child.wait(timeout=20) == 1


def test_a_process_started_by_hand_is_told_how_to_start(monkeypatch) -> None:
    monkeypatch.delenv("CYNOSURE_SUPERVISOR_FD", raising=False)

    with pytest.raises(Misconfigured, match="cynosure up"):
        SupervisorLink.find()
