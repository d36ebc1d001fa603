"""The supervisor with children that are small programs, so that each way to end can be played."""

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from cynosure.common.clock import SystemClock
from cynosure.server.supervisor import ChildFailed, ChildSpec, RestartPolicy, Supervisor

pytestmark = pytest.mark.anyio

_LINE = "import os, socket; line = socket.socket(fileno=int(os.environ['CYNOSURE_SUPERVISOR_FD']));"
READY = _LINE + "line.sendall(b'{}\\n');"
FAST = RestartPolicy(first_pause_s=0.01, max_pause_s=0.02, max_crashes=2)


def child(program: str, **more) -> ChildSpec:
    return ChildSpec("child", (sys.executable, "-S", "-c", program), **more)


def supervise(*children: ChildSpec, policy: RestartPolicy = FAST, on_ready=lambda _: None) -> Supervisor:
    return Supervisor(children, clock=SystemClock(), rng=random.Random(1), policy=policy, on_ready=on_ready)


async def test_a_child_that_never_became_ready_is_not_tried_again(tmp_path: Path) -> None:
    program = f"open({str(tmp_path / 'starts')!r}, 'a').write('x'); raise SystemExit(3)"

    with pytest.raises(ChildFailed, match="could not start") as caught:
        await supervise(child(program)).run()

    assert caught.value.details["ended"] == "exit code 3"
    assert (tmp_path / "starts").read_text() == "x"


async def test_a_child_that_keeps_crashing_is_given_up_after_the_agreed_number(tmp_path: Path) -> None:
    starts, exits = tmp_path / "starts", []
    program = f"{READY} open({str(starts)!r}, 'a').write('x'); os.kill(os.getpid(), 9)"

    with pytest.raises(ChildFailed, match="keeps crashing") as caught:
        await supervise(child(program, on_exit=lambda: exits.append(1))).run()

    assert caught.value.details["ended"] == "signal SIGKILL"
    assert starts.read_text() == "xxx"
    assert len(exits) == 3


async def test_a_child_that_ignores_the_request_to_end_is_killed() -> None:
    program = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {READY} time.sleep(600)"
    supervisor = supervise(
        child(program),
        policy=RestartPolicy(stop_grace_s=0.3),
        on_ready=lambda _: os.kill(os.getpid(), signal.SIGTERM),
    )

    with pytest.raises(ChildFailed, match="did not end cleanly"):
        await supervisor.run()


class Mending(SystemClock):
    """Puts a file back in the second pause that is slept through."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self._pauses = 0

    async def sleep(self, seconds: float) -> None:
        self._pauses += 1
        if self._pauses == 2:
            self._file.with_suffix(".away").rename(self._file)
        await super().sleep(seconds)


async def test_a_child_that_cannot_be_begun_anew_is_tried_again(tmp_path: Path) -> None:
    begun, program = tmp_path / "begun", tmp_path / "program"
    program.write_text(f"""#!{sys.executable} -S
{READY}
import signal
if os.path.exists({str(begun)!r}):
    os.kill(os.getppid(), signal.SIGTERM)
else:
    open({str(begun)!r}, "w").close()
    os.rename({str(program)!r}, {str(program.with_suffix(".away"))!r})
    raise SystemExit(1)
""")
    program.chmod(0o755)
    supervisor = Supervisor(
        [ChildSpec("child", (str(program),))], clock=Mending(program), rng=random.Random(1), policy=FAST
    )

    await supervisor.run()

    assert begun.exists()
    assert program.exists()


async def test_a_child_that_cannot_be_begun_any_more_ends_the_others_orderly(tmp_path: Path) -> None:
    ended, program = tmp_path / "ended", tmp_path / "program"
    program.write_text(f"#!{sys.executable} -S\nimport os\nos.unlink({str(program)!r})\n{READY}\n")
    program.chmod(0o755)
    end = f"open({str(ended)!r}, 'w').close(), os._exit(0)"
    last = f"import signal, time; signal.signal(signal.SIGTERM, lambda *_: ({end})); {READY} time.sleep(600)"

    with pytest.raises(ChildFailed, match="keeps crashing") as caught:
        await supervise(
            ChildSpec("last", (sys.executable, "-S", "-c", last), is_last=True),
            ChildSpec("child", (str(program),)),
        ).run()

    assert caught.value.details["ended"] == "before it began"
    assert ended.exists()


async def test_a_second_signal_hurries_the_children_that_were_asked_to_end(tmp_path: Path) -> None:
    patient = f"""import signal, time
def hurry(*_):
    os._exit(0)
def end(*_):
    signal.signal(signal.SIGTERM, hurry)
    os.kill(os.getppid(), signal.SIGTERM)
signal.signal(signal.SIGTERM, end)
{READY}
while True:
    time.sleep(600)
"""
    last = f"""import signal, time
def end(*_):
    time.sleep(0.5)
    open({str(tmp_path / "orderly")!r}, "w").close()
    os._exit(0)
signal.signal(signal.SIGTERM, end)
{READY}
time.sleep(600)
"""
    async with asyncio.timeout(60):
        await supervise(
            child(patient),
            ChildSpec("last", (sys.executable, "-S", "-c", last), is_last=True),
            policy=RestartPolicy(stop_grace_s=600),
            on_ready=lambda _: os.kill(os.getpid(), signal.SIGTERM),
        ).run()

    assert (tmp_path / "orderly").exists()


async def test_one_childs_fault_ends_the_others_too() -> None:
    sleeping = ChildSpec("sleeping", (sys.executable, "-S", "-c", f"import time; {READY} time.sleep(600)"))

    with pytest.raises(ChildFailed) as caught:
        await supervise(sleeping, child("raise SystemExit(1)")).run()

    assert caught.value.details["child"] == "child"


async def test_an_order_goes_down_the_line_and_facts_come_up() -> None:
    program = f"{_LINE} line.sendall(line.recv(1000)); import time; time.sleep(600)"
    seen: list[object] = []

    def on_ready(facts) -> None:
        seen.append(facts)
        os.kill(os.getpid(), signal.SIGTERM)

    await supervise(child(program, order={"slot": 7}), on_ready=on_ready).run()

    assert seen == [{"child": {"slot": 7}}]


async def test_a_stop_during_the_pause_before_a_restart_ends_at_once() -> None:
    patient = RestartPolicy(first_pause_s=86_400, max_pause_s=86_400)
    supervisor = supervise(child(f"{READY} raise SystemExit(1)"), policy=patient)
    running = asyncio.create_task(supervisor.run())
    while supervisor._processes or not supervisor._ready:  # noqa: ASYNC110 - the pause itself is silent
        await asyncio.sleep(0.01)

    os.kill(os.getpid(), signal.SIGTERM)
    await running  # not a day later

    assert supervisor._processes == {}


async def test_the_last_child_is_asked_to_end_when_the_others_have(tmp_path: Path) -> None:
    ended = tmp_path / "ended"

    def named(name: str, seconds: float, *, is_last: bool = False) -> ChildSpec:
        program = f"""import os, signal, time
def end(*_):
    time.sleep({seconds})
    with open({str(ended)!r}, 'a') as file:
        file.write({name!r})
    os._exit(0)
signal.signal(signal.SIGTERM, end)
{READY}
time.sleep(600)
"""
        return ChildSpec(name, (sys.executable, "-S", "-c", program), is_last=is_last)

    await supervise(
        named("c", 0.0, is_last=True),
        named("a", 0.3),
        named("b", 0.6),
        on_ready=lambda _: os.kill(os.getpid(), signal.SIGTERM),
    ).run()

    order = ended.read_text()
    assert (sorted(order), order[-1]) == (["a", "b", "c"], "c")


async def test_a_last_child_that_cannot_start_does_not_wait_for_the_others() -> None:
    sleeping = ChildSpec("sleeping", (sys.executable, "-S", "-c", f"import time; {READY} time.sleep(600)"))

    with pytest.raises(ChildFailed, match="could not start"):
        await supervise(child("raise SystemExit(1)", is_last=True), sleeping).run()
