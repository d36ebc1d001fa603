"""Clients of a remote that lies."""

import json
from datetime import timedelta
from typing import Any

from cynosure.catalog.connection import (
    Authentication,
    Bearer,
    Connection,
    ConnectionSecrets,
    OAuth,
)
from cynosure.catalog.names import Identifier
from cynosure.common.clock import Clock, SystemClock
from cynosure.common.secrets import Secret
from cynosure.federation.remotes.rest import RestRemote, open_rest
from cynosure.federation.settings import FederationSettings
from cynosure.iceberg.metadata import encode_metadata
from cynosure.iceberg.views import encode_view
from cynosure.testing.lying_remote import LyingRemote
from cynosure.testing.remote_samples import plan_table, plan_view

ORDERS = Identifier(("sales",), "orders")
REPORT = Identifier(("sales",), "report")
PATIENT = FederationSettings(answer_bytes=2**20)
HASTY = FederationSettings(
    timeout=timedelta(seconds=5), connect_timeout=timedelta(seconds=5), answer_bytes=2**20
)
"""For lies that take their time; no other test may depend on how fast this machine is."""
SECRETS = ConnectionSecrets(
    client_secret=Secret("the-client-secret"),
    bearer_token=Secret("the-token"),
    access_key_id=Secret("AKIDOFTHECONNECTION"),
    secret_access_key=Secret("the-secret-key"),
)
OAUTH = OAuth(client_id="near", scopes=("all", "roles"))


class Liar:
    """A server, and what opens clients of it."""

    def __init__(self, server: LyingRemote) -> None:
        self.server = server
        self._opened: list[RestRemote] = []

    def open(
        self,
        authentication: Authentication | None = None,
        *,
        settings: FederationSettings = PATIENT,
        clock: Clock | None = None,
        properties: dict[str, str] | None = None,
        remote_name: str | None = "far",
        ask_credentials: bool = False,
    ) -> RestRemote:
        connection = Connection(
            type="ICEBERG_REST",
            uri=f"{self.server.url}/api/catalog/",
            authentication=authentication or Bearer(),
            remote_name=remote_name,
            properties=properties or {},
        )
        remote = open_rest(
            connection, SECRETS, settings, clock or SystemClock(), "near", ask_credentials=ask_credentials
        )
        self._opened.append(remote)
        return remote

    async def close(self) -> None:
        for remote in self._opened:
            await remote.close()


def table_answer(**changes: Any) -> dict[str, Any]:
    """An honest answer of loadTable."""
    return {
        "metadata-location": "file:///lake/orders/metadata/1.json",
        "metadata": table_metadata(),
        "config": {},
        **changes,
    }


def table_metadata(**changes: Any) -> dict[str, Any]:
    """Metadata of a small table, as JSON."""
    planned = plan_table(PLACE, ORDERS).metadata
    found: dict[str, Any] = json.loads(encode_metadata(planned))
    return {**found, **changes}


def view_answer() -> dict[str, Any]:
    """An honest answer of loadView."""
    metadata = json.loads(encode_view(plan_view(PLACE, REPORT)))
    return {"metadata-location": "file:///lake/report/metadata/1.json", "metadata": metadata, "config": {}}


PLACE: Any = type("Place", (), {"place": "file:///lake"})
