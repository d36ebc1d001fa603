"""Classes of Java in a driver, by their whole names.

Python may also write `jvm.org.apache.spark…`. Then Java is asked for every part of the name whether that is a
class, and looks into all jars for it: more than a hundred times for one statement.

A maintainer must not break: what is kept here is the same for all statements. A driver has one Java.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION: Final = "org.apache.spark.sql.classic.SparkSession"


def find_class(session: "SparkSession", name: str) -> Any:
    """A class: its constructor, and what is static."""
    return _find_class(session.sparkContext._jvm, name)


def find_object(session: "SparkSession", name: str) -> Any:
    """An object of Scala."""
    return _find_object(session.sparkContext._jvm, name)


@cache
def _find_class(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)


@cache
def _find_object(jvm: Any, name: str) -> Any:
    return getattr(_find_class(jvm, f"{name}$"), "MODULE$")
