"""What counts for one federated catalog."""

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.policy import CatalogPolicy, policy_of
from cynosure.federation.settings import FederationSettings
from cynosure.testing.small_catalog import make_catalog, open_directory_in

pytestmark = pytest.mark.anyio

SETTINGS = FederationSettings(
    max_staleness=timedelta(seconds=5), stale_if_down=timedelta(hours=1), credentials="none"
)


async def policy_with(folder: Path, properties: dict[str, str]) -> CatalogPolicy:
    async with open_directory_in(folder) as directory:
        catalog = await make_catalog(directory, folder)
        entity = structs.replace(catalog.entity, properties=properties)
        return policy_of(OpenCatalog(catalog.realm, entity, catalog.shared, catalog.storage), SETTINGS)


async def test_a_catalog_that_says_nothing_is_as_the_settings_say(tmp_path: Path) -> None:
    assert await policy_with(tmp_path, {"owner": "x"}) == CatalogPolicy(
        max_staleness=timedelta(seconds=5),
        stale_if_down=timedelta(hours=1),
        is_read_only=False,
        credentials="none",
        grants="validated",
    )


async def test_what_a_catalog_says_counts_before_settings(tmp_path: Path) -> None:
    said = {
        "cynosure.federation.max-staleness": "0s",
        "cynosure.federation.stale-if-down": "0s",
        "cynosure.federation.read-only": "true",
        "cynosure.federation.credentials": "own",
        "cynosure.federation.grants": "by-name",
    }

    assert await policy_with(tmp_path, said) == CatalogPolicy(
        max_staleness=timedelta(0),
        stale_if_down=timedelta(0),
        is_read_only=True,
        credentials="own",
        grants="by-name",
    )
