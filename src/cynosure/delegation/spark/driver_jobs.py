"""The functions that run in the driver's process, by name.

Each is `def function(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]`; it blocks its thread.

A maintainer must not break: nothing is run there that is not named here, or by whoever made the runner.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_HERE: Final = "cynosure.delegation.jobs"
JOBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "purge-plan": f"{_HERE}.purge.on_spark:plan",
        "purge-delete": f"{_HERE}.purge.on_spark:delete",
        "orphans-list": f"{_HERE}.orphans.on_spark:find_orphans",
        "expiry": f"{_HERE}.expiry.on_spark:expire",
        "compaction": f"{_HERE}.compaction.on_spark:compact",
        "metadata-compaction": f"{_HERE}.metadata_compaction.on_spark:rewrite_manifests",
        "conversion-upgrade": f"{_HERE}.conversion.on_spark:upgrade",
        "conversion-adopt": f"{_HERE}.conversion.on_spark:adopt",
    }
)
