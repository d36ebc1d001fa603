"""Pages about governed SQL name files, settings, reasons, metrics and routes that there are."""

import re
from pathlib import Path

import pytest
from msgspec import Struct

from cynosure.api.query.routes import StatementHandlers, query_routes
from cynosure.api.query.wire import BASE, GatewayConfig, ResultPage, StatementAnswer, StatementBody
from cynosure.common.clock import SystemClock
from cynosure.query.coordinator import distribution
from cynosure.query.settings import QuerySettings
from cynosure.testing.scripted_statements import ScriptedStatements

ROOT = Path(__file__).resolve().parents[2]
CONCEPT = (ROOT / "docs/concepts/governed-sql.md").read_text()
OPERATIONS = (ROOT / "docs/operations/gateway.md").read_text()
GUIDE = (ROOT / "docs/guides/sql.md").read_text()
API = (ROOT / "docs/reference/query-api.md").read_text()
COMPONENTS = """
IcebergScanExec execute_scan DistributedScanExec try_distribute split_files WeightedScheduler active_fragments
ScanTask do_get health_check refresh_credentials WorkerRegistry heartbeats mark_unhealthy
CredentialRefreshTracker watch memory_limit FairSpillPool spill_to_disk fragment_callback system.runtime.tasks
max_retries local_executor materialization watermarks SortMergeJoin DoExchange COUNT(*) OpenTelemetry
"""
"""Of seed 004."""
ROW = re.compile(r"^\| (.+) \| (.+) \| (`tests/[\w/.]+`(?:, `tests/[\w/.]+`)*) \|$", re.MULTILINE)


def rows() -> list[tuple[str, str, str]]:
    return ROW.findall(CONCEPT)


def test_every_part_of_the_design_document_has_a_counterpart_and_a_test() -> None:
    theirs = " ".join(theirs for theirs, _, _ in rows())

    assert [each for each in COMPONENTS.split() if each not in theirs] == []
    cited = {path for _, _, tests in rows() for path in re.findall(r"`(.+?)`", tests)}
    assert [path for path in cited if not (ROOT / path).is_file()] == []
    named = {path for _, ours, _ in rows() for path in re.findall(r"`(query/[\w/.]+)`", ours)}
    assert [path for path in named if not (ROOT / "src/cynosure" / path).exists()] == []


def keys_of(struct: type[Struct], prefix: str) -> set[str]:
    found = {prefix}
    for name, value in zip(struct.__struct_fields__, struct.__struct_defaults__, strict=True):
        inner = type(value)
        if issubclass(inner, Struct):
            found |= keys_of(inner, f"{prefix}.{name}")
        found.add(f"{prefix}.{name}")
    return found


@pytest.mark.parametrize(
    "page", [CONCEPT, OPERATIONS, GUIDE, API], ids=["concept", "operations", "guide", "api"]
)
def test_settings_exist(page: str) -> None:
    known = keys_of(QuerySettings, "query")
    named = {each.rstrip(".") for each in re.findall(r"`(query\.[a-z_.]+)", page)}

    assert named - known == set()


def test_every_reason_is_explained() -> None:
    reasons = [
        value for name, value in vars(distribution).items() if name.isupper() and isinstance(value, str)
    ]

    assert len(reasons) > 8, "they are found"
    assert [each for each in reasons if f"`{each}" not in CONCEPT] == []


def test_metrics_exist() -> None:
    known = (ROOT / "docs/reference/metrics.md").read_text()
    named = set(re.findall(r"`(cynosure_query_\w+)`", CONCEPT + OPERATIONS))

    assert len(named) > 5, "they are found"
    assert [each for each in named if each not in known] == []


def test_every_route_is_on_the_page() -> None:
    config = GatewayConfig("1", "spark", 100, 2**20, 30.0, 60.0, ["application/json"])
    handlers = StatementHandlers(ScriptedStatements(), config, SystemClock())
    written = {
        (method, re.sub(r"\{\w+\}", "{}", path))
        for method, path in re.findall(r"^\| `([A-Z]+) (/[^`?]+)", API, re.MULTILINE)
    }

    routes = {
        (each.method, re.sub(r"\{\w+\}", "{}", each.path.removeprefix(BASE)))
        for each in query_routes(handlers)
    }

    assert routes - written == set()


@pytest.mark.parametrize("struct", [StatementBody, StatementAnswer, ResultPage])
def test_every_field_is_on_the_page(struct: type[Struct]) -> None:
    names = struct.__struct_encode_fields__

    assert [name for name in names if f"`{name}`" not in API and f'"{name}"' not in API] == []
