"""Another trusted engine: PyIceberg reads, and what `read-restrictions` says is applied here, row by row.

As somebody would write it from the page about restrictions, who has never seen the gateway's code.
"""

from datetime import date
from decimal import Decimal
from typing import Any

import httpx
import pyarrow as pa
from pyiceberg.catalog import load_catalog

from cynosure.client.tls import NO_TLS
from cynosure.testing.admin import Admin
from cynosure.testing.login import Credential, Login
from cynosure.testing.query_server import QueryScene
from tests.query.differential.rules import mask

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
COMPARISONS = {
    "lt": lambda one, other: one < other,
    "lt-eq": lambda one, other: one <= other,
    "gt": lambda one, other: one > other,
    "gt-eq": lambda one, other: one >= other,
    "eq": lambda one, other: one == other,
    "not-eq": lambda one, other: one != other,
    "starts-with": lambda one, other: one.startswith(other),
    "not-starts-with": lambda one, other: not one.startswith(other),
}


class TrustedEngine:
    """Reads whole tables for somebody."""

    def __init__(self, scene: QueryScene, own: Credential) -> None:
        self._scene = scene
        self._own = Login(scene.catalog.url, own)

    @classmethod
    async def create(cls, scene: QueryScene) -> "TrustedEngine":
        """One with a principal of its own, which the administrator trusts."""
        async with scene.catalog.client() as http:
            admin = Admin(http)
            own = await admin.create_principal("engine")
            await admin.send("PUT", "/cynosure/principals/engine/trusted-service", {"trusted": True})
        return cls(scene, own)

    def load(self, user: Credential, table: str) -> httpx.Response:
        """The catalog's answer about a table."""
        return self._get(self._exchange(user), table)

    def read(self, user: Credential, table: str) -> pa.Table:
        """The rows that somebody may see, as they may be seen."""
        token = self._exchange(user)
        answer = self._get(token, table).raise_for_status().json()
        restrictions = answer.get("read-restrictions", {})
        lake = self._scene.lake
        catalog = load_catalog("engine", type="rest", uri=lake.root, warehouse=lake.name, token=token)
        loaded = catalog.load_table(table)
        data = loaded.scan().to_arrow()
        names = {field.field_id: field.name for field in loaded.schema().fields}
        shown = restrictions.get("required-row-filter", True)
        rows = [row for row in data.to_pylist() if is_true(shown, row, names)]
        for each in restrictions.get("required-column-projections", ()):
            name = names[each["field-id"]]
            for row in rows:
                row[name] = mask(row[name], each["action"], data.schema.field(name).type)
        return pa.Table.from_pylist(rows, schema=data.schema)

    def _exchange(self, user: Credential) -> str:
        form = {
            "grant_type": _EXCHANGE,
            "subject_token": Login(self._scene.catalog.url, user).token(),
            "actor_token": self._own.token(),
        }
        with httpx.Client(trust_env=False, verify=NO_TLS, timeout=30) as http:
            answer = http.post(f"{self._scene.catalog.root}/v1/oauth/tokens", data=form)
        return str(answer.raise_for_status().json()["access_token"])

    def _get(self, token: str, table: str) -> httpx.Response:
        namespace, name = table.split(".")
        headers = {"Authorization": f"Bearer {token}", "X-Iceberg-Access-Delegation": "vended-credentials"}
        with httpx.Client(trust_env=False, verify=NO_TLS, timeout=30, headers=headers) as http:
            return http.get(f"{self._scene.lake.url}/namespaces/{namespace}/tables/{name}")


def is_true(expression: Any, row: dict[str, Any], names: dict[int, str]) -> bool:
    """A filter of the protocol, on original values. What is not known here is an error."""
    if isinstance(expression, bool):
        return expression
    kind = expression["type"]
    match kind:
        case "true" | "false":
            return bool(kind == "true")
        case "and":
            return is_true(expression["left"], row, names) and is_true(expression["right"], row, names)
        case "or":
            return is_true(expression["left"], row, names) or is_true(expression["right"], row, names)
    operand = expression.get("child") or expression.get("left") or expression.get("term")
    value = row[names[operand["id"]]]
    match kind:
        case "is-null":
            return value is None
        case "not-null":
            return value is not None
        case "is-nan" | "not-nan":
            return value is not None and (value != value) == (kind == "is-nan")  # noqa: PLR0124 - only NaN does
        case "in" | "not-in":
            known = [to_value(each, value) for each in plain(expression["values"])]
            return value is not None and (value in known) == (kind == "in")
    constant = expression["right"] if "right" in expression else expression["value"]
    return value is not None and bool(COMPARISONS[kind](value, to_value(plain(constant), value)))


def plain(constant: Any) -> Any:
    """A constant, with its type beside it or without."""
    if not isinstance(constant, dict):
        return constant
    return constant["values"] if constant["type"] == "literals" else constant["value"]


def to_value(constant: Any, like: Any) -> Any:
    """JSON's text as a value like the column's."""
    constant = plain(constant)
    if isinstance(like, Decimal):
        return Decimal(str(constant))
    return type(like).fromisoformat(constant) if isinstance(like, date) else constant
