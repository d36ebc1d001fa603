"""The functions that run in the driver's process, by name.

Each is `def function(link: DriverLink, parameters: dict[str, Any]) -> dict[str, Any]`; it blocks its thread.

A maintainer must not break: nothing is run there that is not named here, or by whoever made the runner.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from cynosure.common.errors import NotFound
from cynosure.delegation.spark.link import DriverLink

DriverJob = Callable[[DriverLink, dict[str, Any]], dict[str, Any]]

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


def load_job(name: str, jobs: Mapping[str, str]) -> DriverJob:
    """The function of this name."""
    place = jobs.get(name)
    if place is None:
        raise NotFound("There is no such job for Spark", name=name)
    module, _, function = place.partition(":")
    job: DriverJob = getattr(import_module(module), function)
    return job
