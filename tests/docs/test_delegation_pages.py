"""The pages about long work name every route, spelling, field and error code of the delegation service."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.api.delegation.routes import delegation_routes
from cynosure.api.delegation.wire import BASE
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.payload import CommonPayload, OperationParameters
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import STATUS_ALIASES, TYPE_ALIASES
from cynosure.testing.small_delegation import REALM, SmallDelegation

ROOT = Path(__file__).resolve().parents[2]
API = (ROOT / "docs/reference/delegation-api.md").read_text()
OPERATIONS = (ROOT / "docs/operations/delegation.md").read_text()


@pytest.mark.anyio
async def test_every_route_is_on_the_page() -> None:
    written = set(re.findall(r"^\| `([A-Z]+) ([^`]+)` \|", API, re.MULTILINE))
    small = SmallDelegation()

    routes = delegation_routes(small.make_service(), realm=REALM, clock=SystemClock())

    assert written == {(each.method, each.path.removeprefix(f"{BASE}/")) for each in routes}
    await small.close()


def test_every_spelling_is_on_the_page() -> None:
    for aliases in (TYPE_ALIASES, STATUS_ALIASES):
        for spelling, meant in aliases.items():
            (row,) = re.findall(rf"^\| `{meant}` \|.*$", API, re.MULTILINE)
            assert f"`{spelling}`" in row


@pytest.mark.parametrize("struct", [CommonPayload, OperationParameters, TaskDetails])
def test_every_field_is_on_the_page(struct: type) -> None:
    fields: tuple[str, ...] = struct.__struct_fields__  # type: ignore[attr-defined]

    assert [name for name in fields if name not in API] == []


def test_every_code_of_a_task_is_explained() -> None:
    files = sorted((ROOT / "src/cynosure/delegation").rglob("*.py"))
    said = {code for path in files for code in codes_in(path)}

    assert len(said) > 10, "they are found"
    assert sorted(code for code in said if f"`{code}`" not in OPERATIONS) == []


def codes_in(path: Path) -> Iterator[str]:
    """What is given to errors as their `code`."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.keyword(arg="code", value=ast.Constant(value=str(code))):
                yield code
