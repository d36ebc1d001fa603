"""One request of the protocol to a remote: where it goes, who sends it, and what its answer means.

A maintainer must not break: only an answer that says that nobody was let in (401, 419) makes a request go
out a second time, once, with another token. All other repetition is the caller's business.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import httpx
import msgspec

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.federation.circles import HEADER, pass_on
from cynosure.federation.errors import RemoteRefused
from cynosure.federation.remotes.failures import NO_CATALOG
from cynosure.federation.remotes.renewing import Renewed
from cynosure.federation.remotes.rest.addresses import below
from cynosure.federation.remotes.rest.config import ConfigAnswer, RemoteConfig, read_config
from cynosure.federation.remotes.rest.errors import Asked, misbehaved, to_error, unknown
from cynosure.federation.remotes.rest.identity import Identity, Outgoing
from cynosure.federation.remotes.transport import Answered, Lost, Transport, Unusable
from cynosure.storage.access.s3.sigv4 import encode_query

T = TypeVar("T")
Query = Iterable[tuple[str, str]]

_NOT_LET_IN: Final = frozenset({401, 419})
_CONFIG_LIFE_S: Final = 600.0
"""A remote may move its prefix, or learn more; before the end of it another one is asked for by the way."""
_CONFIG_BYTES: Final = 2**20
_ANSWERED: Final = 200
"""Whatever it was exactly: the remote answered, and what it said could not be read."""


class Asker:
    """Asks one remote."""

    def __init__(
        self,
        base: httpx.URL,
        warehouse: str | None,
        headers: Mapping[str, str],
        identity: Identity,
        transport: Transport,
        clock: Clock,
        *,
        name: str,
        mark: str,
    ) -> None:
        """`warehouse` is the catalog there, `headers` go with every request, `name` is our catalog's.

        `mark` is by what our catalog is known again if its remote stands for it (`federation.circles`).
        """
        self.name = name
        self._mark = mark
        self._base = base
        self._warehouse = warehouse
        self._headers = {"accept": "application/json", **headers}
        self._identity = identity
        self._transport = transport
        self._config: Renewed[RemoteConfig] = Renewed(self._fetch_config, clock)

    @property
    def known_config(self) -> RemoteConfig:
        """What the remote has said about itself; what is usual before it was asked."""
        return self._config.last or RemoteConfig()

    async def load_config(self) -> RemoteConfig:
        """What the remote says about itself; asked for now and then."""
        return await self._config.get()

    async def reload_config(self) -> RemoteConfig:
        """The same, asked now."""
        return await self._config.fetch()

    async def ask(
        self,
        asked: Asked,
        method: str,
        *parts: str,
        query: Query = (),
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        limit: int | None = None,
    ) -> Answered:
        """Send one request below the catalog's own path; `parts` are percent-encoded.

        `limit` is for the answer's bytes, where it is less than what the settings allow.
        The answer has a status of 2xx, or is 304. All else is an error, by what was `asked`.
        """
        config = await self.load_config()
        sent = dict(headers or {})
        if body is not None:
            sent["content-type"] = "application/json"
        if key is not None and config.takes_keys:
            sent["idempotency-key"] = key
        prefix = (config.prefix,) if config.prefix else ()
        answer = await self._send(method, ("v1", *prefix, *parts), query, sent, body, limit)
        if isinstance(answer, Answered) and (answer.status < 300 or answer.status == 304):
            return answer
        raise to_error(answer, asked, self.name)

    def read(self, answer: Answered, body_type: type[T], asked: Asked) -> T:
        """The JSON of an answer."""
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise self.fail("not JSON by its content type", asked)
        try:
            return msgspec.json.decode(answer.body, type=body_type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self.fail("not what the protocol says", asked) from error

    def fail(self, problem: str, asked: Asked) -> CynosureError:
        """The error for an answer that cannot be used, though its status is good."""
        if asked.is_change:
            return unknown(self.name, problem, status=_ANSWERED)
        return misbehaved(self.name, problem)

    async def close(self) -> None:
        """End what is under way, and the connections."""
        await self._config.close()
        await self._identity.close()
        await self._transport.close()

    async def _send(
        self,
        method: str,
        path: Iterable[str],
        query: Query,
        headers: Mapping[str, str],
        body: bytes | None,
        limit: int | None,
    ) -> Answered | Lost | Unusable:
        encoded = encode_query(query)
        url = below(self._base, *path, query=encoded)
        outgoing = Outgoing(method, url, encoded, body or b"")
        sent = {**self._headers, **headers, **({HEADER: pass_on(self._mark)} if self._mark else {})}
        for is_last in (False, True):
            proof = await self._identity.prove(outgoing)
            answer = await self._transport.send(
                method, url, headers={**sent, **proof.headers}, body=body, limit=limit
            )
            is_let_in = not isinstance(answer, Answered) or answer.status not in _NOT_LET_IN
            if is_let_in or is_last or not await self._identity.renew(proof):
                break
        return answer

    async def _fetch_config(self) -> tuple[RemoteConfig, float]:
        def missing(_: str) -> CynosureError:
            return RemoteRefused(self.name, status=404, reason=NO_CATALOG)

        asked = Asked(missing, is_callers=False, believed=None)
        query = [] if self._warehouse is None else [("warehouse", self._warehouse)]
        answer = await self._send("GET", ("v1", "config"), query, {}, None, _CONFIG_BYTES)
        if not isinstance(answer, Answered) or answer.status != 200:
            raise to_error(answer, asked, self.name)
        told = self.read(answer, ConfigAnswer, asked)
        return read_config(told, asked_at=str(self._base), catalog=self.name), _CONFIG_LIFE_S
