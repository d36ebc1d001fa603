"""A world with a catalog `lake`, and what attacks on repeated requests send to it."""

from typing import Any

import httpx

BASE = "http://test/api/catalog"
LAKE = f"{BASE}/v1/lake"
NAMESPACES = f"{LAKE}/namespaces"
TABLES = f"{NAMESPACES}/ns/tables"
POLICIES = f"{BASE}/polaris/v1/lake/namespaces/ns/policies"
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "ssn", "required": False, "type": "string"},
    ],
}
CHANGE: dict[str, Any] = {
    "requirements": [],
    "updates": [{"action": "set-properties", "updates": {"a": "b"}}],
}


def keyed(text: str = "019a8b52-6a0c-7d3e-9f61-2b1c8e7d5a40") -> dict[str, str]:
    return {"Idempotency-Key": text}


def is_replayed(answer: httpx.Response) -> bool:
    return answer.headers.get("idempotency-replayed") == "true"


def told(answer: httpx.Response) -> tuple[int, bytes, str | None]:
    """What must be the same whenever it is told."""
    return answer.status_code, answer.content, answer.headers.get("etag")


def error_type(answer: httpx.Response) -> str:
    found: str = answer.json()["error"]["type"]
    return found
