"""Every suite of the catalog's figures runs, tiny, and says which promises it judges; not how fast."""

import asyncio
from pathlib import Path

import pytest
from benchmarks.catalog_server import find_peer, start_ours
from benchmarks.http_load import Ask, ask_with_python
from benchmarks.measure import Options
from benchmarks.results_file import Result
from benchmarks.runner import run_suite
from benchmarks.suites import catalog, scale
from benchmarks.tree_dataset import Tree


def run(suite: str, only: tuple[str, ...] = (), **options: object) -> Result:
    given = Options({name: str(value) for name, value in options.items()})
    return asyncio.run(run_suite(suite, given, rounds=1, warmups=0, only=only))


def test_the_catalog_suite_measures_our_server_without_an_error() -> None:
    result = run("catalog", ours="memory", seconds=0.2)

    assert len(result.candidates) == 9
    assert {rounds[0].notes["errors"] for rounds in result.candidates.values()} == {0}
    assert all(rounds[0].watched_cpu_s > 0 for rounds in result.candidates.values())
    figures = [promise.figure for promise in catalog.promises(result)]
    assert "memory: commit, 16 clients: CPU per request, ms" in figures
    assert "memory: resident memory, MiB" in figures


def test_a_durable_store_is_judged_beside_the_disk(tmp_path: Path) -> None:
    only = ("sqlite: commit, 1 client", "fdatasync")
    result = run("catalog", only, ours="sqlite", seconds=0.2, directory=tmp_path)

    assert catalog.promises(result)[0].figure == "sqlite: commit, 1 client, over fdatasync, times"


def test_the_workloads_of_polaris_tools_run_without_an_error() -> None:
    result = run("polaris_tools", ours="memory", depth=2, commit_seconds=0.1, weighted_seconds=0.1)

    assert len(result.candidates) == 5
    assert {rounds[0].notes["errors"] for rounds in result.candidates.values()} == {0}
    # 3 namespaces, 2 leaves with 5 tables and 3 views each.
    assert result.candidates["memory: create tree"][0].operations == 3 + 10 + 6


def test_the_scale_suite_counts_and_compares_sizes(tmp_path: Path) -> None:
    result = run("scale", sizes="20,300", writes=5, directory=tmp_path)

    created = result.candidates["create, 300"][0]
    assert created.rows >= 3 * created.operations
    assert result.candidates["load cold, 300"][0].requests > 2 * scale.DISTINCT
    figures = [promise.figure for promise in scale.promises(result)]
    assert "commit: bytes at 300 over 20 tables" in figures


def test_a_tree_is_as_large_as_its_parameters_say() -> None:
    tree = Tree(width=3, depth=3, tables=4, views=2)

    assert len(list(tree.namespaces())) == (3**3 - 1) // 2
    assert len({(each.namespace, each.name) for each in tree.all_tables()}) == 3**2 * 4
    assert len(tree.all_views()) == 3**2 * 2


def test_answers_that_are_no_success_are_errors() -> None:
    async def ask_for_nothing() -> tuple[int, int]:
        async with start_ours("memory") as target:
            absent = Ask(f"{target.catalog.root}/namespaces/absent")
            told = await ask_with_python(target.catalog, absent, clients=2, seconds=0.1)
            return told.requests, told.errors

    requests, errors = asyncio.run(ask_for_nothing())

    assert requests == errors > 0


def test_a_peer_that_asks_who_its_clients_are_is_not_measured_by_a_stranger() -> None:
    async def ask_as_a_stranger() -> None:
        async with start_ours("memory") as target:
            await find_peer("again", f"{target.catalog.url}/api/catalog?warehouse=bench")

    with pytest.raises(SystemExit, match="answered 401 to /v1/config"):
        asyncio.run(ask_as_a_stranger())


def test_a_port_nobody_listens_on_is_told() -> None:
    with pytest.raises(SystemExit, match="nothing listens"):
        asyncio.run(find_peer("absent", "http://127.0.0.1:1"))
