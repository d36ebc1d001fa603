"""`cynosure tokens` as its users meet it, without a server."""

import json

import pytest

from tests.cli.running import Cynosure


def test_keys_are_rotated_and_shown_without_a_server(cynosure: Cynosure) -> None:
    assert cynosure("store", "init").code == 0

    rotated = cynosure("tokens", "rotate", "--json")
    shown = cynosure("tokens", "keys")
    failed = cynosure("tokens", "keys", "--realm", "nowhere")

    (key,) = json.loads(rotated.out)
    assert shown.out.splitlines()[0].split("  ")[0] == "KEY"
    assert shown.out.splitlines()[1].startswith(key["kid"])
    assert failed.code == 1
    assert "Realm does not exist" in failed.err


def test_another_keyring_than_that_of_the_store_is_refused_at_once(
    cynosure: Cynosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cynosure("catalogs", "create", "lake").code == 0

    monkeypatch.setenv("CYNOSURE_KEYRING__FILE", "other.json")
    refused = cynosure("catalogs", "list")

    assert refused.code == 1
    assert "protected by another master key" in refused.err
    assert "keyring.file" in refused.err.rpartition("\nFix: ")[2]
