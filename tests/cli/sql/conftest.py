from collections.abc import Callable, Iterator

import pytest

from cynosure.testing.scripted_statements import ScriptedStatements, serve_scripted
from tests.cli.running import Cynosure, Ended


@pytest.fixture
def statements() -> ScriptedStatements:
    return ScriptedStatements()


@pytest.fixture
def gateway(statements: ScriptedStatements) -> Iterator[str]:
    with serve_scripted(statements) as url:
        yield url


@pytest.fixture
def sql(cynosure: Cynosure, gateway: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    monkeypatch.setenv("CYNOSURE_CLIENT_SECRET", "not-a-secret")
    return lambda *arguments: cynosure(
        *("sql", "--url", gateway, "--gateway", gateway, "--client-id", "alice"), *arguments
    )
