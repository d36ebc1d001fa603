"""`cynosure tokens` as its users meet it, without a server."""

import json

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
