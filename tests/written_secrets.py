"""At the end of a run: no secret that a test made is in anything that the run wrote.

Searched are all files below pytest's temporary directories (logs of servers, stores, events, whole data
directories) and what tests printed. A run in which something is found fails, and names the file.

A maintainer must not break: what may hold a secret is named in ALLOWED with its reason, and nowhere else.
"""

from collections import Counter
from pathlib import Path

import pytest

from cynosure.testing.known_secrets import CREDENTIALS_FILES, KNOWN, MADE_BY_SERVER, Leak
from cynosure.testing.s3_servers import find_s3_servers

ALLOWED = (
    CREDENTIALS_FILES,  # what a server writes for whoever installs it, mode 0600
    ".root-credentials-*",  # the same before it is good
    "*.secret",  # what a test hands to a command as a file that holds a secret
    "cynosure/profiles.*",  # what a user has the command line remember, mode 0600
)

LEAKS = pytest.StashKey[list[Leak]]()
_MOST_SHOWN = 20


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEAKS] = []
    config.pluginmanager.register(_Watch(config), "written-secrets")


class _Watch:
    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._leaks = config.stash[LEAKS]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What a test printed or logged."""
        for title, text in report.sections:
            if title.startswith("Captured"):
                self._leaks += KNOWN.search_bytes(text.encode(), f"{report.nodeid} ({title.lower()})")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if (base := _find_base(self._config)) is not None:
            KNOWN.add_credentials_files(base)
            for server in find_s3_servers().values():
                if len(server.secret_access_key) >= 24:
                    KNOWN.add(server.secret_access_key)
            self._leaks += _without_greetings(list(KNOWN.search(base, ALLOWED)))
        if self._leaks and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._leaks:
            return
        terminalreporter.section("secrets in what the run wrote", red=True)
        for leak in self._leaks[:_MOST_SHOWN]:
            terminalreporter.write_line(f"{leak.what} in {leak.where}, byte {leak.offset}")
        if len(self._leaks) > _MOST_SHOWN:
            terminalreporter.write_line(f"and {len(self._leaks) - _MOST_SHOWN} more")


def _without_greetings(leaks: list[Leak]) -> list[Leak]:
    """A server prints what it made for root, once: so once it may be in the file that gets its output."""
    greetings = Counter(leak.where for leak in leaks if leak.what == MADE_BY_SERVER)
    return [
        leak
        for leak in leaks
        if leak.what != MADE_BY_SERVER or not leak.where.endswith(".log") or greetings[leak.where] > 1
    ]


def _find_base(config: pytest.Config) -> Path | None:
    """Where the run's temporary directories are; nowhere when no test asked for one."""
    factory: pytest.TempPathFactory | None = getattr(config, "_tmp_path_factory", None)
    return getattr(factory, "_basetemp", None)
