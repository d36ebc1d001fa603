"""The catalog's own API, from the driver: what Iceberg's clients for Spark cannot ask, or not safely.

A maintainer must not break: every change says which table it means, by uuid, and on which state it rests.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from cynosure.client.api import ApiClient, realm_headers, segment
from cynosure.client.catalog import CatalogApi
from cynosure.client.http import HttpClient
from cynosure.client.tls import ClientTls
from cynosure.client.tokens import ClientCredentials, TokenSource
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.delegation.spark.link import CatalogReach

T = TypeVar("T")

_DELEGATION: Final = {"X-Iceberg-Access-Delegation": "vended-credentials"}


class TableApi(CatalogApi):
    """Changes of a table that a driver makes itself."""

    async def commit(
        self,
        namespace: tuple[str, ...],
        name: str,
        *,
        requirements: list[dict[str, Any]],
        updates: list[dict[str, Any]],
    ) -> None:
        """Commit to a table."""
        body = {"requirements": requirements, "updates": updates}
        await self._change("POST", f"{self._of(namespace)}/tables/{segment(name)}", body=body)

    async def create(self, namespace: tuple[str, ...], body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a table; what is answered to `loadTable`."""
        reply = await self._change("POST", f"{self._of(namespace)}/tables", body=dict(body))
        made: dict[str, Any] = reply.decode(dict)
        return made

    async def load_with_credentials(self, namespace: tuple[str, ...], name: str) -> dict[str, Any]:
        """A table with a way to its files."""
        path = f"{self._of(namespace)}/tables/{segment(name)}"
        found: dict[str, Any] = (await self._api.request("GET", path, headers=_DELEGATION)).decode(dict)
        return found

    async def stage(self, namespace: tuple[str, ...], body: Mapping[str, Any]) -> dict[str, Any]:
        """Reserve a place for a table that is not there yet, with a way to what lies there."""
        reply = await self._api.request(
            "POST",
            f"{self._of(namespace)}/tables",
            body={**body, "stage-create": True},
            headers=_DELEGATION,
            is_repeatable=True,
        )
        staged: dict[str, Any] = reply.decode(dict)
        return staged

    async def append(
        self,
        namespace: tuple[str, ...],
        name: str,
        *,
        data_files: list[dict[str, Any]],
        table_uuid: str,
        summary: Mapping[str, str],
    ) -> None:
        """Append files that are there already."""
        place = f"{self._ours}/{segment(chr(0x1F).join(namespace))}/tables/{segment(name)}/append"
        body = {"data-files": data_files, "table-uuid": table_uuid, "summary": dict(summary)}
        await self._change("POST", place, body=body)


def ask_catalog(reach: CatalogReach, work: Callable[[TableApi], Awaitable[T]]) -> T:
    """Do some requests, in the name of the service's principal."""

    async def run() -> T:
        clock = SystemClock()
        rng = random.Random()  # noqa: S311 - spreads retries
        path = {name: Path(value) for name in ("ca", "certificate", "key") if (value := getattr(reach, name))}
        tls = ClientTls(**path) if path else None
        async with HttpClient(reach.url, clock=clock, rng=rng, tls=tls) as http:
            credentials = ClientCredentials(reach.client_id, Secret(reach.client_secret), reach.scope)
            tokens = TokenSource(http, credentials, clock, headers=realm_headers(reach.realm))
            api = ApiClient(http, tokens=tokens, realm=reach.realm)
            return await work(TableApi(api, reach.warehouse))

    return asyncio.run(run())
