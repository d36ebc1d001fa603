"""The Azurite of the suite as a storage configuration, with containers of a test's own.

Azurite looks at a token's claims and not at its signature, so the login service here signs with anything.
"""

import ssl
import time
import uuid
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
from msgspec import json, structs

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.secrets import Secret
from cynosure.storage.access.azure.account import Account
from cynosure.storage.access.azure.tokens import AzureTokens
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.backends.azure import AzureFileIO
from cynosure.storage.config import AzureKeys, AzureStorage
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from tests.storage.recorded_service import Heard, RecordedService, Reply

TENANT = "11111111-2222-3333-4444-555555555555"
APPLICATION = "66666666-7777-8888-9999-000000000000"
SECRET = "application-secret"
HASTY = StorageSettings(
    connect_timeout=timedelta(seconds=0.5),
    stall_timeout=timedelta(seconds=0.5),
    operation_timeout=timedelta(seconds=1.5),
    retries=1,
)
"""For tests in which the storage never answers. One that does may take longer on a busy machine."""
PATIENT = StorageSettings(
    connect_timeout=timedelta(seconds=60),
    stall_timeout=timedelta(seconds=60),
    operation_timeout=timedelta(seconds=120),
)
"""For the emulator, which does one thing after another and may have much to do."""
RETRYING_ONCE = structs.replace(PATIENT, retries=1)
"""For tests in which it fails at once."""


def grant(heard: Heard) -> Reply:
    """A token of the application, for whoever knows its secret."""
    if heard.path != f"/{TENANT}/oauth2/v2.0/token" or heard.form()["client_secret"] != SECRET:
        return Reply(b'{"error": "invalid_client"}', 401)
    return Reply(json.encode({"access_token": make_token(), "expires_in": 3600, "token_type": "Bearer"}))


def make_token() -> str:
    now_s = int(time.time())
    claims = {
        "aud": "https://storage.azure.com",
        "iss": f"https://sts.windows.net/{TENANT}/",
        "iat": now_s,
        "nbf": now_s - 60,
        "exp": now_s + 3600,
        "oid": APPLICATION,
        "tid": TENANT,
    }
    return jwt.encode(claims, "k" * 32, algorithm="HS256")


class AzureCorner:
    """One container, another one beside it, and a login service."""

    def __init__(self, url: str, login: RecordedService) -> None:
        parts = urlsplit(url)
        self.endpoint = f"https://{parts.netloc}"
        self.account = parts.path.strip("/")
        self.settings = structs.replace(PATIENT, ca_file=Path(parse_qs(parts.query)["ca"][0]))
        self._tls = ssl.create_default_context(cafile=self.settings.ca_file)
        self.login = login
        unique = uuid.uuid4().hex
        self.container, self.other = f"lake-{unique}", f"pond-{unique}"
        self.base = self.locate(self.container, "allowed")
        self.config = AzureStorage(
            allowed_locations=(self.base.text,),
            tenant_id=TENANT,
            endpoint=self.endpoint,
            authority_host=login.url,
        )
        self.keys = AzureKeys(APPLICATION, Secret(SECRET))

    def locate(self, container: str, *segments: str) -> Location:
        return Location.parse(f"abfss://{container}@{self.account}.dfs.core.windows.net").child(*segments)

    def open_tokens(
        self,
        settings: StorageSettings | None = None,
        *,
        keys: AzureKeys | None = None,
        clock: Clock | None = None,
        **changes: object,
    ) -> AzureTokens:
        settings = settings or self.settings
        account = Account.of(structs.replace(self.config, **changes))
        return AzureTokens(
            account,
            keys or self.keys,
            TokenService(settings),
            clock or SystemClock(),
            lifetime_ms=round(settings.credential_lifetime.total_seconds() * 1000),
        )

    def open(
        self, settings: StorageSettings | None = None, *, keys: AzureKeys | None = None, **changes: object
    ) -> AzureFileIO:
        settings = settings or self.settings
        settings = structs.replace(settings, ca_file=self.settings.ca_file)
        config = structs.replace(self.config, **changes)
        tokens = self.open_tokens(settings, keys=keys, **changes)
        return AzureFileIO(config, tokens.tokens, settings)

    async def set_up(self) -> None:
        for container in (self.container, self.other):
            assert await self.ask("PUT", f"/{container}?restype=container", token=make_token()) == 201

    async def clean(self) -> None:
        for container in (self.container, self.other):
            await self.ask("DELETE", f"/{container}?restype=container", token=make_token())

    async def ask(self, method: str, path: str, *, token: str = "", content: bytes = b"") -> int:
        """The status of an answer: with a token, or with whatever signature is in the path."""
        headers = {"x-ms-version": "2025-01-05", "x-ms-blob-type": "BlockBlob"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        async with httpx.AsyncClient(verify=self._tls, trust_env=False, timeout=60) as http:
            url = f"{self.endpoint}/{self.account}{path}"
            return (await http.request(method, url, headers=headers, content=content)).status_code
