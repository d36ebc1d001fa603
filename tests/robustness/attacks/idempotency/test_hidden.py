"""Where existence is hidden, asking twice with a key tells no more than asking once: I76 with I42.

What is missing for good is stored and told again, marked as such. What only may not be seen is not stored. So
the mark could tell one from the other.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.auth.settings import AuthSettings
from cynosure.testing.admin import Grant
from tests.api.world import World, open_world
from tests.robustness.attacks.idempotency.lake import NAMESPACES, is_replayed, keyed
from tests.robustness.attacks.test_every_route import _GENERIC, _POLICY, BODIES, PARAMETERS, VERSION

pytestmark = pytest.mark.anyio

VIEW = {"name": "v", "schema": {"type": "struct", "schema-id": 0, "fields": []}}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path, AuthSettings(hide_existence=True)) as opened:
        yield opened


async def ask_twice(client: httpx.AsyncClient, method: str, url: str, body: Any) -> list[tuple[Any, ...]]:
    """What is told to who asks the same twice, without the names in it."""
    answers = [
        await client.request(method, f"http://test{url}", json=body, headers=keyed()) for _ in range(2)
    ]
    return [
        (each.status_code, each.json()["error"]["type"] if each.content else "", is_replayed(each))
        for each in answers
    ]


@pytest.mark.parametrize(
    "grants", [(), (Grant("NAMESPACE_FULL_METADATA", ("other",)),)], ids=["nothing", "some"]
)
async def test_a_key_tells_not_what_exists(
    world: World, root: httpx.AsyncClient, grants: tuple[Grant, ...]
) -> None:
    polaris = "http://test/api/catalog/polaris/v1/lake/namespaces/ns"
    for url, body in [
        (NAMESPACES, {"namespace": ["other"]}),
        (f"{NAMESPACES}/ns/views", {**VIEW, "view-version": VERSION, "properties": {}}),
        (f"{polaris}/generic-tables", _GENERIC),
        (f"{polaris}/policies", _POLICY),
    ]:
        made = await root.post(url, json=body)
        assert made.status_code == 200, made.text
    credential = await world.admin(root).create_user("ann", "lake", *grants)
    differing, compared = [], 0
    async with await world.login(credential) as ann:
        for route in world.service.routes:
            if not route.is_keyed:
                continue
            body = BODIES.get((route.method.lower(), route.path))
            there = route.path
            for name in route.list_params():
                there = there.replace(f"{{{name}}}", PARAMETERS[name])
            existing = await ask_twice(ann, route.method, there, body)
            for name in route.list_params():
                missing_path = route.path.replace(f"{{{name}}}", "99" if name == "id" else "absent")
                for other in route.list_params():
                    missing_path = missing_path.replace(f"{{{other}}}", PARAMETERS[other])
                missing = await ask_twice(ann, route.method, missing_path, body)
                if missing[0] != existing[0]:
                    # Catalogs in which somebody has a role are no secret.
                    continue
                compared += 1
                if missing[1] != existing[1]:
                    differing.append((route.operation_id, name, existing, missing))

    assert differing == []
    assert compared > 40
