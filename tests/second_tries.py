"""A test with real processes that failed is run once more; what then passes is named at the end of the run.

Servers, drivers and stores of this machine may be slow, killed by the kernel, or out of ports, and one such
test must not cost a whole run. It is a bug report all the same: the run's summary shows how it failed.

A maintainer must not break: a test of rules, stores, repeated requests or rights is never run again. What
fails there once in a hundred times is what somebody loses data or secrets by.
"""

import os
from pathlib import Path

import pytest
import pytest_timeout

AGAIN = (
    "auth/audit/test_served",
    "auth/tokens/oidc/test_canaille",
    "benchmarks/",
    "cli/",
    "client/",
    "delegation/",
    "engines/",
    "federation/real/",
    "federation/remotes/",
    "federation/test_real_remote",
    "federation/test_replicas",
    "federation/test_second_server",
    "query/",
    "robustness/",
    "scripts/",
    "server/",
    "storage/",
    "testing/",
)
"""Where tests start processes, or talk to some: beginnings of paths below `tests`."""
NEVER = (  # Files, or tests of one.
    "delegation/store/",  # who holds a task, and what is written of it
    *(
        "query/coordinator/test_every_way",  # who may see what, here and in the next ones
        "query/differential/",
        "query/faults/test_faults.py::test_nothing_that_a_scan_knows",
        "query/faults/test_secrets",
        "query/local/test_governed",
        "query/redteam/",
        "query/scan/test_deletes",
        "query/scan/test_governed",
        "query/scan/test_masks",
        "query/scan/test_paths",
        "query/scan/test_pyiceberg",
        "query/scan/test_shape",
        "query/spark/native/test_barrier",
        "query/spark/native/test_same_rows",
    ),
    "robustness/attacks/",  # who may do what
    "robustness/test_idempotency",  # what is done once
    "robustness/test_sim",  # a seed replays exactly
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what may be run again: nothing in a soak, which is run to find what fails once."""
    if "CYNOSURE_SOAK" in os.environ or config.getoption("usepdb"):
        return
    for item in items:
        if may_run_again(item.path, config.rootpath, item.name):
            item.add_marker(pytest.mark.flaky(reruns=1))


def may_run_again(path: Path, root: Path, test: str) -> bool:
    """Whether a test of this file is run once more when it fails."""
    if not path.is_relative_to(root / "tests"):
        return False
    place = path.relative_to(root / "tests").as_posix()
    return place.startswith(AGAIN) and not f"{place}::{test}".startswith(NEVER)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The second time a test may not hang either: its failure has ended the time-out of the first."""
    if getattr(item, "execution_count", 1) > 1:
        settings = pytest_timeout._get_item_settings(item)
        if settings.timeout and not settings.func_only:
            item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)
