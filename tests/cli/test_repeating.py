"""Commands that are run again, and answers that are lost on their way, against a real server."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator

import pytest
from typer.core import TyperCommand, TyperGroup

from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.faults import LoseAnswer, ReplaceAnswer, Respond
from cynosure.testing.harness.http_proxy import HttpProxy, find_header, is_mutation, run_http_proxy
from cynosure.testing.harness.processes import Processes
from cynosure.testing.known_secrets import KNOWN
from tests.cli.running import Cynosure, Ended
from tests.docs.test_pages import load_commands

CHANGES = {"create", "update", "delete", "grant", "revoke", "attach", "detach", "trust"} | {
    "rotate-credentials",
    "reset-credentials",
    "append",
    "run",
    "add-columns",
    "set-partitioning",
    "set-sort-order",
}
OPERATOR_ONLY = {"realms", "tokens", "profiles"}
"""They speak the operator socket's own commands, or to nobody."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    directory = tmp_path_factory.mktemp("repeating")
    with Processes(directory) as processes:
        yield asyncio.run(start_catalog_server(processes, directory))


@pytest.fixture
def proxy(server: CatalogServer) -> Iterator[HttpProxy]:
    with run_http_proxy(server.url) as proxy:
        yield proxy


@pytest.fixture
def remote(
    server: CatalogServer, proxy: HttpProxy, cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """`cynosure` as an administrator, over a network that may lose answers."""
    monkeypatch.setenv("ROOT_SECRET", server.credential.secret)
    who = ("--client-id", server.credential.client_id, "--client-secret-env", "ROOT_SECRET")
    return lambda *arguments: cynosure(*arguments, "--url", proxy.url, *who)


def secret_of(ended: Ended) -> str:
    assert ended.code == 0, ended.err
    return KNOWN.add(json.loads(ended.out)["credentials"]["clientSecret"])


@pytest.mark.parametrize(
    "fault", [LoseAnswer(), LoseAnswer(is_polite=True), ReplaceAnswer(500), ReplaceAnswer(504)], ids=str
)
def test_a_lost_answer_is_asked_for_again_and_the_change_made_once(
    remote: Callable[..., Ended], proxy: HttpProxy, fault: LoseAnswer | ReplaceAnswer
) -> None:
    name = f"p{abs(hash(str(fault)))}"
    rule = proxy.add(fault, when=is_mutation)

    made = remote("principals", "create", name, "--json")
    shown = remote("principals", "get", name)

    assert rule.hits == 1, "the server made it, and we were not told"
    assert secret_of(made)
    assert "Answered before" in made.err
    assert shown.code == 0


def test_what_is_run_again_with_its_key_is_answered_as_the_first_time(remote: Callable[..., Ended]) -> None:
    again = ("principals", "create", "twice", "--idempotency-key", "order-1", "--json")

    first, second = remote(*again), remote(*again)
    other = remote("principals", "create", "other", "--idempotency-key", "order-1")
    without = remote("principals", "create", "twice")

    assert secret_of(first) == secret_of(second)
    assert "Answered before" not in first.err
    assert "Answered before" in second.err
    assert (other.code, without.code) == (1, 1)
    assert "another payload" in other.err


def test_a_command_that_gave_up_says_with_which_key_it_can_be_run_again(
    remote: Callable[..., Ended], proxy: HttpProxy
) -> None:
    sent = proxy.record(is_mutation)
    proxy.add(ReplaceAnswer(504), when=is_mutation, times=None)
    gave_up = remote("principals", "create", "slow", "--timeout", "1s", "--credentials-file", "made.json")
    proxy.clear()

    [key] = {find_header(each, "idempotency-key") or "" for each in sent}
    again = remote(
        "principals", "create", "slow", "--idempotency-key", key, "--credentials-file", "made.json"
    )

    assert gave_up.code == 1
    assert key in gave_up.err
    assert again.code == 0, again.err


def test_a_deleted_catalog_is_deleted_again_under_its_key(
    remote: Callable[..., Ended], server: CatalogServer
) -> None:
    location = (server.warehouse / "gone").as_uri()
    assert remote("catalogs", "create", "gone", "--location", location).code == 0
    again = ("catalogs", "delete", "gone", "--idempotency-key", "k")

    assert [remote(*again).code, remote(*again).code] == [0, 0]
    assert remote("catalogs", "delete", "gone").code == 1


def test_a_server_that_promises_nothing_is_asked_once(remote: Callable[..., Ended], proxy: HttpProxy) -> None:
    config = proxy.add(Respond(404), when=lambda request: "/cynosure/config" in request.path, times=None)
    lost = proxy.add(LoseAnswer(), when=is_mutation, times=None)

    made = remote("principals", "create", "once", "--idempotency-key", "order-2")

    assert made.code == 1
    assert (config.hits, lost.hits) == (1, 1)
    assert "does not say that it honours" in made.err


@pytest.mark.parametrize("words", [("catalogs", "list"), ("principal-roles", "create", "patient")], ids=str)
def test_who_waits_for_a_server_is_told_what_for(
    remote: Callable[..., Ended], proxy: HttpProxy, words: tuple[str, ...]
) -> None:
    body = (
        b'{"error": {"message": "It is \\u001b[31mdown", "type": "ServiceUnavailableException", "code": 503}}'
    )
    fault, path = Respond(503, body, (("retry-after", "2"),)), f"/{words[0]}"
    rule = proxy.add(fault, when=lambda request: path in request.path)

    ended = remote(*words, "--json")

    assert (ended.code, rule.hits) == (0, 1)
    json.loads(ended.out)
    (line,) = [each for each in ended.err.splitlines() if each.startswith("Waiting: ")]
    said = r"Waiting: the server answers 503 \(It is \\x1b\[31mdown\)\. "
    assert re.fullmatch(said + r"Trying again until \d\d:\d\d:\d\d; Ctrl-C ends it\.", line)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--idempotency-key", "not a key"), "--idempotency-key"),
        (("--idempotency-key", ""), "--idempotency-key"),
        (("--timeout", "soon"), "--timeout"),
        (("--timeout", "0s"), "--timeout"),
    ],
)
def test_wrong_flags_are_refused_before_anything_is_done(
    cynosure: Cynosure, flags: tuple[str, str], named: str
) -> None:
    ended = cynosure("principals", "create", "ann", "--credentials-file", "made.json", *flags)

    assert ended.code == 1
    assert named in ended.err
    assert cynosure("principals", "create", "ann", "--credentials-file", "made.json").code == 0


def test_in_this_process_a_key_counts_as_well(cynosure: Cynosure) -> None:
    again = ("catalogs", "create", "lake", "--idempotency-key", "k")

    first, second = cynosure(*again), cynosure(*again)

    assert (first.code, second.code, first.out) == (0, 0, second.out)
    assert "Answered before" in second.err


def test_commands_that_make_one_change_take_a_key_and_others_do_not() -> None:
    def walk(name: str, command: object) -> Iterator[tuple[str, TyperCommand]]:
        if isinstance(command, TyperGroup):
            for inner, each in command.commands.items():
                yield from walk(f"{name} {inner}", each)
        elif isinstance(command, TyperCommand) and not command.hidden:
            yield name, command

    taking, expected = set(), set()
    for group, whole in load_commands().items():
        for name, command in walk(group, whole):
            if any("--idempotency-key" in each.opts for each in command.params):
                taking.add(name)
            if group not in OPERATOR_ONLY and name.split()[-1] in CHANGES and " " in name:
                expected.add(name)

    assert taking == expected
