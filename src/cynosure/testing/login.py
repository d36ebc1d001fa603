"""How tests and benchmarks prove to a server who they are: client credentials, a token, and a header with it.

A maintainer must not break: a token is renewed when it has lived its life and for no other reason, so that a
test in which it stops being good earlier sees that.
"""

import json
import secrets
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from cynosure.client.tls import NO_TLS
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
        self._renew_at_s = 0.0
        self._lock = threading.Lock()

    def token(self) -> str:
        """The token; asked for when there is none yet."""
        with self._lock:
            if self._is_needed():
                with httpx.Client(trust_env=False, timeout=30, verify=NO_TLS) as client:
                    self._keep(client.send(self._ask()))
            return self._token

    @property
    def headers(self) -> dict[str, str]:
        """For clients that cannot be given an `auth`."""
        return {**self._headers, "Authorization": f"Bearer {self.token()}"}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Put the token into a request, after one that asks for it if there is none yet."""
        if self._is_needed():
            self._keep((yield self._ask()))
        request.headers.update(self._headers)
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    def _ask(self) -> httpx.Request:
        return httpx.Request("POST", self._address, data=self._form, headers=self._headers)

    def _is_needed(self) -> bool:
        return time.monotonic() >= self._renew_at_s

    def _keep(self, answer: httpx.Response) -> None:
        if answer.status_code != 200:
            raise LoginRefused(answer)
        told = answer.json()
        self._token = told["access_token"]
        self._renew_at_s = time.monotonic() + told["expires_in"]


class LoginRefused(AssertionError):
    """A server gave no token."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(f"no token: {answer.status_code} {answer.text}")
        self.answer = answer
