"""REST remotes held to what all remotes promise: a second server of ours."""

import pytest

from cynosure.federation.remotes.rest import RestRemote
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog
from cynosure.testing.remote_kit import RemoteKit, Stage


class TestSecondCynosure(RemoteKit):
    @pytest.fixture
    def stage(
        self, second_server: CatalogServer, second_catalog: ServedCatalog, second_remote: RestRemote
    ) -> Stage:
        return Stage(second_remote, (second_server.warehouse / second_catalog.name).as_uri())
