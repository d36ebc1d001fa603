"""Where Spark may try a task again; that it does so: tests/query/faults."""

import pytest

from cynosure.query.settings import QuerySparkSettings
from cynosure.query.spark.config import to_spark_settings
from cynosure.query.spark.elsewhere import count_per_executor

CLUSTER = "spark://h:7077"
ENABLED = "spark.excludeOnFailure.enabled"
PER_EXECUTOR = "spark.excludeOnFailure.task.maxTaskAttemptsPerExecutor"
PER_NODE = "spark.excludeOnFailure.task.maxTaskAttemptsPerNode"


@pytest.mark.parametrize("attempts", range(1, 12))
@pytest.mark.parametrize("executors", range(6))
def test_attempts_are_spread_as_far_as_executors_go_and_never_fewer_than_there_may_be(
    attempts: int, executors: int
):
    most = count_per_executor(attempts, executors)
    assert most * max(executors, 1) >= attempts
    assert executors < 2 or attempts < 2 or most < attempts


def test_a_cluster_keeps_tasks_away_from_where_they_failed():
    config = to_spark_settings(QuerySparkSettings(master=CLUSTER, fragment_retries=2)).config
    assert config[ENABLED] == "true"
    assert (config[PER_EXECUTOR], config[PER_NODE]) == ("3", "2")


def test_limits_follow_what_an_operator_says_of_attempts():
    said = {"spark.task.maxFailures": "2"}
    config = to_spark_settings(QuerySparkSettings(master=CLUSTER, config=said)).config
    assert (config[PER_EXECUTOR], config[PER_NODE]) == ("2", "1")
    off = {ENABLED: "false"}
    assert to_spark_settings(QuerySparkSettings(master=CLUSTER, config=off)).config[ENABLED] == "false"


@pytest.mark.parametrize("settings", [{"master": "local[4]"}, {"master": CLUSTER, "fragment_retries": 0}])
def test_where_nothing_is_tried_elsewhere_nothing_is_said_of_it(settings: dict[str, object]):
    config = to_spark_settings(QuerySparkSettings(**settings)).config  # type: ignore[arg-type]
    assert ENABLED not in config
