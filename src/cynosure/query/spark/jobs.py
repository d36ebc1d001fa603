"""What the driver of statements is asked, by name. Each function blocks its thread.

    query     run a statement, send its rows to a socket
    explain   how Spark would run it
    kill      end an attempt of a task that the broker gave up
    workers   which executors there are, and which tasks run for nobody

A maintainer must not break: the user's text is looked at twice, before Spark knows what it means (a command
would be run right there) and after.
"""

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from cynosure.query.spark.elsewhere import spread_attempts
from cynosure.query.spark.explaining import explain_plan
from cynosure.query.spark.java_classes import SESSION, find_class
from cynosure.query.spark.leaf import Leaf, LeafContext, LeafRelation
from cynosure.query.spark.opaque import to_rows
from cynosure.query.spark.plan_check import check_plan
from cynosure.query.spark.sending import send_rows
from cynosure.spark.kinds import JobLink, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HERE: Final = "cynosure.query.spark.jobs"
JOBS: Final = MappingProxyType(
    {
        "query": f"{_HERE}:run_query",
        "explain": f"{_HERE}:explain_query",
        "kill": f"{_HERE}:kill_attempt",
        "workers": f"{_HERE}:list_workers",
    }
)


class QueryOrder(Struct, frozen=True):
    """What is run."""

    text: str
    relations: tuple[LeafRelation, ...]
    context: LeafContext
    leaf: str
    """Where the leaf is: `module:Class`."""
    time_zone: str = "UTC"
    results: str = ""
    """The socket for rows."""

    def __repr__(self) -> str:
        return f"QueryOrder({self.context.query_id}, …)"


def run_query(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Run a statement; the rows go to the socket."""
    order = msgspec.convert(parameters, QueryOrder)
    frame = _open(link, order)
    context: Any = link.spark.sparkContext._jsc.sc()
    spread_attempts(context)
    return {"batches": send_rows(frame, order.results, link)}


def explain_query(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """How Spark would run a statement."""
    frame = _open(link, msgspec.convert(parameters, QueryOrder))
    return {"plan": explain_plan(frame)}


def kill_attempt(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """End an attempt; Spark begins another one, as long as it may."""
    context: Any = link.spark.sparkContext._jsc.sc()
    is_killed = context.killTaskAttempt(parameters["attempt_id"], True, "lost")
    return {"is_killed": bool(is_killed)}


def list_workers(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Executors that are alive (`HOST/ID`) with their cores; and tasks that go on after their end."""
    context: Any = link.spark.sparkContext._jsc.sc()
    is_local = context.isLocal()
    found: list[tuple[str, int]] = []
    listed = context.statusStore().executorList(True)
    for at in range(listed.length()):
        each = listed.apply(at)
        if is_local or each.id() != "driver":
            found.append((f"{str(each.hostPort()).rpartition(':')[0]}/{each.id()}", int(each.totalCores())))
    return {"workers": found, "left": _find_left(link) if is_local else []}


def _find_left(link: JobLink) -> list[int]:
    """Ids of tasks that take a core of a local driver, and belong to nothing that runs.

    Asked of the scheduler: what listeners were told of tasks comes late, and a task that works for long
    would count as one that was left.
    """
    context: Any = link.spark.sparkContext._jsc.sc()
    entries = context.taskScheduler().taskIdToTaskSetManager().entrySet().toArray()
    return [int(each.getKey()) for each in entries if each.getValue().isZombie()]


def _open(link: JobLink, order: QueryOrder) -> "DataFrame":
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - an extra

    session = link.spark
    session.conf.set("spark.sql.session.timeZone", order.time_zone)
    # The parser asks the thread's session for its settings: without one, `${env:X}` would tell what X is.
    find_class(session, SESSION).setActiveSession(session._jsparkSession)
    leaf: Leaf = load(order.leaf)()
    for relation in order.relations:
        built = leaf.build(session, relation, order.context, link)
        built.createTempView(relation.view)
    java = session._jsparkSession
    parsed = java.sessionState().sqlParser().parsePlan(order.text)
    check_plan(parsed)
    # Analyzed, and no more: nothing that the text says has been evaluated yet.
    rows = to_rows(session, parsed)
    check_plan(rows.queryExecution().analyzed())
    return DataFrame(rows, session)
