"""Which garbage collector a driver's Java gets: ours, or the one that somebody names, and never two."""

from pathlib import Path

import pytest

from cynosure.query.settings import QuerySparkSettings
from cynosure.query.spark.config import make_config, to_spark_settings

OPTIONS = "spark.driver.extraJavaOptions"
OTHER = "-Xss4m -XX:+UseZGC"


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)


def collectors(scratch: Path, **config: str) -> list[str]:
    options = make_config(to_spark_settings(QuerySparkSettings(config=config)), scratch=scratch)[OPTIONS]
    return [each for each in options.split() if each.endswith("GC")]


def test_it_is_the_one_that_takes_the_least_cpu(tmp_path: Path):
    assert collectors(tmp_path) == ["-XX:+UseParallelGC"]
    assert collectors(tmp_path, **{OPTIONS: "-Xss4m -XX:+PrintFlagsFinal"}) == ["-XX:+UseParallelGC"]


def test_one_that_settings_name_is_the_only_one(tmp_path: Path):
    assert collectors(tmp_path, **{OPTIONS: OTHER}) == ["-XX:+UseZGC"]
    assert collectors(tmp_path, **{"spark.driver.defaultJavaOptions": OTHER}) == []


@pytest.mark.parametrize("variable", ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"])
def test_one_that_the_environment_names_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
):
    monkeypatch.setenv(variable, OTHER)

    assert collectors(tmp_path) == []


@pytest.mark.parametrize(("variable", "folder"), [("SPARK_CONF_DIR", "."), ("SPARK_HOME", "conf")])
def test_one_in_sparks_own_file_of_defaults_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, folder: str
):
    (tmp_path / folder).mkdir(exist_ok=True)
    monkeypatch.setenv(variable, str(tmp_path))
    assert collectors(tmp_path) == ["-XX:+UseParallelGC"]

    (tmp_path / folder / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions {OTHER}\n")
    assert collectors(tmp_path) == []
