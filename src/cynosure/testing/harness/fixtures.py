"""The harness as pytest fixtures, for this project and for packages that extend it.

    pytest_plugins = ["cynosure.testing.harness.fixtures"]

A maintainer must not break: whatever a fixture hands out is gone when the test ends, also when it failed.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.processes import Processes


@pytest.fixture
def manual_clock() -> ManualClock:
    """A clock that moves only when told to."""
    return ManualClock()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts real processes; all of them are dead when the test ends."""
    with Processes(tmp_path) as group:
        yield group


@pytest.fixture
async def fault_proxy(anyio_backend: str) -> AsyncIterator[Callable[[str], Awaitable[FaultProxy]]]:
    """Puts a fault proxy in front of a URL: `proxy = await fault_proxy(url)`, then use `proxy.url`."""
    async with AsyncExitStack() as stack:

        async def make(url: str) -> FaultProxy:
            return await stack.enter_async_context(FaultProxy.to_url(url))

        yield make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of every process' log beside a failure."""
    report = yield
    group = getattr(item, "funcargs", {}).get("processes")
    if report.failed and isinstance(group, Processes):
        for process in group.all:
            report.sections.append(process.describe())
    return report
