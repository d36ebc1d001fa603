"""`cynosure events tail`: what was done and refused, for people and for programs."""

import json

import pytest

from tests.cli.running import Cynosure


@pytest.fixture
def data(cynosure: Cynosure) -> str:
    assert cynosure("principals", "create", "ann", "--data", "data").code == 0
    return "data"


def test_it_shows_one_line_for_people(cynosure: Cynosure, data: str) -> None:
    ended = cynosure("events", "tail", "--data", data, "--operation", "create-principal", "--target", "ann")

    (line,) = ended.out.splitlines()
    assert ended.code == 0
    assert line.split()[1:] == ["allowed", "operator", "create-principal", "ann"]


def test_it_prints_one_object_per_line_for_programs(cynosure: Cynosure, data: str) -> None:
    ended = cynosure("events", "tail", "--data", data, "--json", "--since", "1d")

    events = [json.loads(line) for line in ended.out.splitlines()]
    assert "create-principal" in [event["operation"] for event in events]
    assert [int(event["id"]) for event in events] == sorted(int(event["id"]) for event in events)


def test_filters_reach_the_server(cynosure: Cynosure, data: str) -> None:
    assert cynosure("events", "tail", "--data", data, "--principal", "nobody").out == ""
    assert cynosure("events", "tail", "--data", data, "--decision", "denied").out == ""
    assert cynosure("events", "tail", "--data", data, "--until", "1h", "--since", "2h").out == ""
    assert cynosure("events", "tail", "--data", data, "--since", "2020-01-01T00:00Z").out != ""


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (("--since", "yesterday"), "--since"),
        (("--since", "2026-01-01T00:00:00"), "--since"),
        (("--until", "soon"), "--until"),
        (("--until", "1h", "--follow"), "--until"),
    ],
)
def test_what_is_no_time_is_refused_with_what_to_write(
    cynosure: Cynosure, flags: tuple[str, ...], field: str
) -> None:
    ended = cynosure("events", "tail", "--data", "data", *flags)

    assert ended.code == 1
    assert f"field: {field}" in ended.err
    assert "Fix:" in ended.err


def test_help_teaches(cynosure: Cynosure) -> None:
    ended = cynosure("events", "tail", "--help")
    assert "--decision denied" in ended.out
    assert "--follow" in ended.out
