"""Where a fragment is tried again: on another executor, where there is one.

An executor on which everything fails is always free first. Without this it would get every attempt at a
fragment, and so fail statements that others could run.

Spark can keep a task away from executors that it failed on, with a limit that is the same for any number of
them: a cluster smaller than it thinks is told to kill an executor, or the statement. So the limit is reckoned
anew for each statement, in the settings that Spark looks at when it begins a stage
(`tests/query/spark/test_contract.py`).

A maintainer must not break: a fragment may be tried as often as it may, however few executors there are; and
nothing but the task that failed is kept away from where it failed.
"""

from types import MappingProxyType
from typing import Any, Final

ATTEMPTS: Final = "spark.task.maxFailures"
"""How often a task is tried."""
_ENABLED: Final = "spark.excludeOnFailure.enabled"
_PER_EXECUTOR: Final = "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor"
_PER_NODE: Final = "spark.excludeOnFailure.task.maxTaskAttemptsPerNode"
_MANY: Final = str(2**30)
_NO_FURTHER: Final = MappingProxyType(
    {
        "spark.excludeOnFailure.stage.maxFailedTasksPerExecutor": _MANY,
        "spark.excludeOnFailure.stage.maxFailedExecutorsPerNode": _MANY,
        # One driver runs everybody's statements: one that fails must not cost the others an executor.
        "spark.excludeOnFailure.application.maxFailedTasksPerExecutor": _MANY,
        "spark.excludeOnFailure.application.maxFailedExecutorsPerNode": _MANY,
    }
)


def make_settings(said: str) -> dict[str, str]:
    """Of an application on a cluster, where a task is tried as often as is said."""
    attempts = int(said) if said.isdecimal() else 1
    if attempts <= 1:
        return {}
    # Spark does not begin with a limit for nodes that is not below the number of attempts.
    limits = {_PER_EXECUTOR: str(attempts), _PER_NODE: str(attempts - 1)}
    return {_ENABLED: "true", **limits, **_NO_FURTHER}


def spread_attempts(context: Any) -> None:
    """Have Spark (a `SparkContext` of Java) spread the attempts at a task over the executors of now."""
    settings = context.conf()
    if settings.get(_ENABLED, "false") != "true":
        return
    attempts = int(settings.get(ATTEMPTS))
    # The driver is among them.
    executors = int(context.getExecutorMemoryStatus().size()) - 1
    settings.set(_PER_EXECUTOR, str(count_per_executor(attempts, executors)))
    # Executors of one machine are others, too.
    settings.set(_PER_NODE, str(attempts))


def count_per_executor(attempts: int, executors: int) -> int:
    """How often a task may be tried on one of so many executors."""
    return -(-attempts // max(executors, 1))
