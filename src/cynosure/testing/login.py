"""How tests and benchmarks prove to a server who they are: client credentials, a token, and a header with it.

A maintainer must not break: a token is asked for once and never renewed by itself, so that a test in which it
stops being good sees that.
"""

import json
import secrets
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from cynosure.testing.known_secrets import KNOWN

TOKENS = "/api/catalog/v1/oauth/tokens"
ALL_ROLES = "PRINCIPAL_ROLE:ALL"


@dataclass(frozen=True, slots=True)
class Credential:
    """What a principal proves itself with."""

    client_id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """As the property `credential` of Iceberg's clients."""
        return f"{self.client_id}:{self.secret}"


def make_credential(client_id: str = "root") -> Credential:
    """A credential with a secret that nobody else has, and that is searched for in all that is written."""
    return Credential(client_id, KNOWN.add(secrets.token_hex(16), client_id=client_id))


def find_root(data: Path, realm: str = "default") -> Credential | None:
    """The root that a server or a command made because it was given none; `None` if it was."""
    name = "root-credentials.json" if realm == "default" else f"root-credentials-{realm}.json"
    try:
        found = json.loads((data / name).read_text())
    except FileNotFoundError:
        return None
    return Credential(found["client_id"], found["client_secret"])


class Login(httpx.Auth):
    """Authenticates the requests of any number of httpx clients with one token."""

    requires_response_body = True

    def __init__(
        self, url: str, credential: Credential, *, scope: str = ALL_ROLES, realm: str | None = None
    ) -> None:
        self.credential = credential
        self._address = url + TOKENS
        self._form = {
            "grant_type": "client_credentials",
            "client_id": credential.client_id,
            "client_secret": credential.secret,
            "scope": scope,
        }
        self._headers = {} if realm is None else {"Polaris-Realm": realm}
        self._token = ""
        self._lock = threading.Lock()

    def token(self) -> str:
        """The token; asked for when there is none yet."""
        with self._lock:
            if not self._token:
                with httpx.Client(trust_env=False, timeout=30) as client:
                    self._token = _read_token(client.send(self._ask()))
            return self._token

    def forget(self) -> None:
        """Have another token asked for with the next request."""
        self._token = ""

    @property
    def headers(self) -> dict[str, str]:
        """For clients that cannot be given an `auth`."""
        return {**self._headers, "Authorization": f"Bearer {self.token()}"}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Put the token into a request, after one that asks for it if there is none yet."""
        if not self._token:
            self._token = _read_token((yield self._ask()))
        request.headers.update(self._headers)
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    def _ask(self) -> httpx.Request:
        return httpx.Request("POST", self._address, data=self._form, headers=self._headers)


def _read_token(answer: httpx.Response) -> str:
    if answer.status_code != 200:
        raise LoginRefused(answer)
    token: str = answer.json()["access_token"]
    return token


class LoginRefused(AssertionError):
    """A server gave no token."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(f"no token: {answer.status_code} {answer.text}")
        self.answer = answer
