"""Signing clients' requests to S3, for stores that give no credentials, or clients that want none.

Where the store has a token service, requests are signed with a session that reaches the table and nothing
else: should a store read a request in another way than `requests.py`, it still stays inside the table. Where
it gives none, only requests are signed that the store holds the client to (`trials.py`).

A maintainer must not break: whatever was read is what is signed, and the client's headers are covered as they
came, because clients send their own rather than ours.
"""

from cynosure.common.clock import Clock
from cynosure.storage.access.ports import Reached, Scope, Signed, StoreRequest, Subject
from cynosure.storage.access.s3.addresses import Endpoints
from cynosure.storage.access.s3.covered_headers import PAYLOAD_HASH
from cynosure.storage.access.s3.keys import S3KeySource, S3Session
from cynosure.storage.access.s3.requests import S3Request, read_request
from cynosure.storage.access.s3.sigv4 import amz_date, authorize
from cynosure.storage.access.s3.trials import Trials
from cynosure.storage.access.vending import Vending
from cynosure.storage.config import S3Storage
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.settings import StorageSettings


class S3Signer:
    """Signs requests to one store."""

    def __init__(
        self,
        config: S3Storage,
        keys: S3KeySource,
        settings: StorageSettings,
        clock: Clock,
        vending: Vending | None = None,
    ) -> None:
        self._config = config
        self._keys = keys
        self._trials = Trials(config, keys, settings, clock)
        self._clock = clock
        self._vending = vending
        self._endpoints = Endpoints(config)

    def inspect(self, request: StoreRequest) -> "InspectedS3":
        """See `Signer.inspect`."""
        return InspectedS3(self, read_request(request, self._endpoints, self._config.kms))

    async def sign(self, request: S3Request, scope: Scope, subject: Subject) -> Signed:
        """A request that was read, signed."""
        session = await self._find_session(scope, subject)
        if session is None:
            await self._trials.require_bound(request, scope.locations[0])
            session = await self._keys.load()
        added = {
            "host": request.address.host,
            "x-amz-date": amz_date(self._clock.now_us()),
            PAYLOAD_HASH: request.payload_sha256,
        }
        if session.session_token is not None:
            added["x-amz-security-token"] = session.session_token.reveal()
        added["authorization"] = authorize(
            session,
            method=request.method,
            path=request.address.path,
            query=request.query,
            signed={**request.covered, **added},
            payload_sha256=request.payload_sha256,
            region=self._config.region,
            service="s3",
        )
        had = {name.lower() for name in request.headers}
        # Some clients send what they had and what they get, others only what they get.
        missing = {name: [value] for name, value in added.items() if name not in had}
        return Signed(request.uri, {**request.headers, **missing})

    async def _find_session(self, scope: Scope, subject: Subject) -> S3Session | None:
        """A session that reaches the table and nothing else, where the store gives one."""
        if self._vending is None:
            return None
        try:
            vended = self._vending.get(scope, subject) or await self._vending.vend(scope, subject)
        except (StorageRefused, StorageUnavailable):
            # There may be no token service at all, or the location's name means more than one place in the
            # language of its rules.
            return None
        return S3Session.from_properties(vended.credentials[0].config)


class InspectedS3:
    """A request that was read, and its signer."""

    __slots__ = ("_request", "_signer")

    def __init__(self, signer: S3Signer, request: S3Request) -> None:
        self._signer = signer
        self._request = request

    @property
    def reached(self) -> Reached:
        """See `Inspected.reached`."""
        return self._request.reached

    async def sign(self, scope: Scope, subject: Subject) -> Signed:
        """See `Inspected.sign`."""
        return await self._signer.sign(self._request, scope, subject)
