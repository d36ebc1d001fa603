"""Requests signed as Amazon does it.

A maintainer must not break: of services other than S3 the path is signed encoded once more than it is sent;
and nothing but the keys of the connection, or of the role that it names, ever signs.
"""

import hashlib
from urllib.parse import quote

from cynosure.catalog.connection import SigV4
from cynosure.common.clock import Clock
from cynosure.federation.remotes.aws_keys import close_aws_keys
from cynosure.federation.remotes.rest.identity import Outgoing, Proof
from cynosure.storage.access.s3.keys import S3KeySource
from cynosure.storage.access.s3.sigv4 import amz_date, authorize


class SigV4Identity:
    """Signs each request."""

    def __init__(self, authentication: SigV4, keys: S3KeySource, clock: Clock) -> None:
        self._authentication = authentication
        self._keys = keys
        self._clock = clock

    async def prove(self, outgoing: Outgoing) -> Proof:
        """See `Identity`."""
        session = await self._keys.load()
        digest = hashlib.sha256(outgoing.body).hexdigest()
        signed = {
            "host": outgoing.url.netloc.decode("ascii"),
            "x-amz-date": amz_date(self._clock.now_us()),
            "x-amz-content-sha256": digest,
        }
        if session.session_token is not None:
            signed["x-amz-security-token"] = session.session_token.reveal()
        path = outgoing.url.raw_path.decode("ascii").partition("?")[0]
        authorization = authorize(
            session,
            method=outgoing.method,
            path=quote(path, safe="/~"),
            query=outgoing.query,
            signed=signed,
            payload_sha256=digest,
            region=self._authentication.signing_region,
            service=self._authentication.signing_name,
        )
        added = {name: value for name, value in signed.items() if name != "host"}
        return Proof({**added, "authorization": authorization})

    async def renew(self, refused: Proof) -> bool:
        """See `Identity`. Another signature with the same keys would be refused as well."""
        return False

    async def close(self) -> None:
        """See `Identity`."""
        await close_aws_keys(self._keys)
