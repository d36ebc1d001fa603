"""Whether a statement is distributed: every check in its order, and that what should be distributed is."""

import pytest
from sqlglot import exp

from cynosure.query.coordinator import distribution as d
from cynosure.query.coordinator.distribution import Facts, choose_engine, try_distribute
from cynosure.query.engine import EngineQuery, SessionValues, WorkerInfo
from cynosure.query.errors import EngineUnavailable, NotAllowed
from cynosure.testing.small_engine import SmallEngine
from tests.query.coordinator.asking import nothing

ABOVE = 1_000
QUERY = EngineQuery("q", exp.Select(), (), (), 0.0, SessionValues("ann", "", "", 0))


def workers(healthy: int, sick: int = 0) -> list[WorkerInfo]:
    return [WorkerInfo(f"w{at}", is_healthy=at < healthy) for at in range(healthy + sick)]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        # Each is wrong in all that comes later as well: the order decides.
        (Facts(None, 0, 0, 0), d.NO_CLUSTER),
        (Facts([], 0, 0, 0), d.NO_HEALTHY_WORKER),
        (Facts(workers(0, 3), 0, 0, 0), d.NO_HEALTHY_WORKER),
        (Facts(workers(2), 0, 0, 0), d.NO_SCAN),
        (Facts(workers(2), 1, 1, 0), d.FEWER_FILES),
        (Facts(workers(2), 1, 2, ABOVE - 1), d.BELOW_THRESHOLD),
        (Facts(workers(2), 1, 2, ABOVE), d.LARGE),
        (Facts(workers(1, 5), 1, 1, ABOVE), d.LARGE),
    ],
)
def test_the_order_of_reasons(facts: Facts, reason: str):
    assert try_distribute(facts, distribute_above=ABOVE) == (reason == d.LARGE, reason)


def choose(facts: Facts, *, local: SmallEngine | None, spark: SmallEngine | None) -> tuple[str, str]:
    found = choose_engine(QUERY, facts, local=local, spark=spark, distribute_above=ABOVE)
    return found.engine.name, found.shown


SMALL, LARGE = Facts(workers(2), 1, 2, 1), Facts(workers(2), 1, 2, ABOVE)


def test_a_query_that_should_distribute_does_and_others_do_not():
    local, spark = SmallEngine(nothing), SmallEngine(nothing, name="spark-isolated")
    assert choose(LARGE, local=local, spark=spark) == ("spark-isolated", d.LARGE)
    assert choose(SMALL, local=local, spark=spark) == ("local", d.BELOW_THRESHOLD)


def test_what_the_local_engine_cannot_do_goes_to_spark_whatever_its_size():
    local = SmallEngine(nothing, reason_against="lateral")
    spark = SmallEngine(nothing, name="spark-isolated")
    assert choose(SMALL, local=local, spark=spark) == ("spark-isolated", f"{d.OUTSIDE}: lateral")
    assert choose(SMALL, local=None, spark=spark) == ("spark-isolated", d.LOCAL_OFF)


def test_spark_without_a_worker_is_told_where_nothing_else_can_run_it():
    spark = SmallEngine(nothing, name="spark-isolated")
    assert choose(Facts([], 1, 2, ABOVE), local=None, spark=spark) == (
        "spark-isolated",
        f"{d.LOCAL_OFF}; {d.NO_HEALTHY_WORKER}",
    )
    local = SmallEngine(nothing, reason_against="lateral")
    assert choose(Facts(workers(0, 1), 1, 2, ABOVE), local=local, spark=spark) == (
        "spark-isolated",
        f"{d.OUTSIDE}: lateral; {d.NO_HEALTHY_WORKER}",
    )


def test_no_engine_is_an_error_with_a_fix():
    local = SmallEngine(nothing, reason_against="lateral")
    with pytest.raises(NotAllowed, match="lateral") as raised:
        choose(SMALL, local=local, spark=None)
    assert "query.spark.enabled" in raised.value.fix
    with pytest.raises(EngineUnavailable):
        choose(SMALL, local=None, spark=None)
