"""Somebody who tries."""

from collections.abc import Awaitable, Callable

import httpx

from cynosure.testing.admin import MANAGEMENT
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.login import Credential

LAKE = "/api/catalog/v1/lake"
TOKENS = "/api/catalog/v1/oauth/tokens"


class User:
    """A principal with a client of its own."""

    def __init__(self, server: CatalogServer, name: str, credential: Credential) -> None:
        self.name = name
        self.role = f"{name}_role"
        self.catalog_role = f"{name}_catalog_role"
        self.credential = credential
        self.login = server.login_as(credential)
        self.http = server.client(self.login)

    async def send(self, method: str, path: str, body: object = None) -> httpx.Response:
        return await self.http.request(method, path, json=body)

    async def manage(self, method: str, path: str, body: object = None) -> httpx.Response:
        return await self.send(method, MANAGEMENT + path, body)


MakeUser = Callable[..., Awaitable[User]]


def assert_forbidden(answer: httpx.Response, privilege: str = "") -> None:
    """A refusal that names what is missing."""
    assert answer.status_code == 403, f"{answer.request.method} {answer.request.url}: {answer.text}"
    error = answer.json()["error"]
    assert error["type"] == "ForbiddenException"
    assert privilege in answer.text
