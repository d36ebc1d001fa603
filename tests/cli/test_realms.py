"""`cynosure realms` as its users meet it, without a server."""

import json
from pathlib import Path

from cynosure.testing.known_secrets import KNOWN
from tests.cli.running import Cynosure


def test_a_realm_is_created_listed_changed_and_deleted(cynosure: Cynosure) -> None:
    created = cynosure("realms", "create", "acme", "--property", "team=a", "--property", "x=y=z")
    listed = cynosure("realms", "list")
    updated = json.loads(
        cynosure(
            "realms", "update", "acme", "--set-property", "team=b", "--remove-property", "x", "--json"
        ).out
    )
    shown = cynosure("realms", "get", "acme")
    deleted = cynosure("realms", "delete", "acme")
    left = json.loads(cynosure("realms", "list", "--json").out)

    assert created.code == deleted.code == 0, created.err + deleted.err
    assert [line.split()[0] for line in listed.out.splitlines()] == ["REALM", "acme", "default"]
    assert updated["properties"] == {"team": "b"}
    assert "team" in shown.out
    assert "being deleted" not in shown.out
    assert [each["name"] for each in left] == ["default"]


def test_credentials_are_printed_once_and_a_reset_gives_others(cynosure: Cynosure) -> None:
    made = json.loads(cynosure("realms", "create", "acme", "--json").out)
    reset = json.loads(cynosure("realms", "reset-root", "acme", "--json").out)
    for each in (made, reset):
        KNOWN.add(each["client_secret"])
    looked = cynosure("realms", "get", "acme", "--json").out + cynosure("realms", "list", "--json").out

    assert (made["realm"], made["principal"]) == ("acme", "root")
    assert (len(made["client_id"]), len(made["client_secret"])) == (16, 32)
    assert reset["client_id"] == made["client_id"]
    assert reset["client_secret"] != made["client_secret"]
    assert made["client_secret"] not in looked


def test_credentials_can_be_chosen_with_the_secret_in_a_file(cynosure: Cynosure, tmp_path: Path) -> None:
    secret = tmp_path / "root.secret"
    secret.write_text("correct-horse-battery\n")

    chosen = ("--client-id", "boss", "--client-secret-file", str(secret))
    made = json.loads(cynosure("realms", "create", "acme", *chosen, "--json").out)
    half = cynosure("realms", "create", "other", "--client-id", "boss")
    secret.write_text("short\n")
    short = cynosure("realms", "create", "other", *chosen)

    assert (made["client_id"], made["client_secret"]) == ("boss", "correct-horse-battery")
    assert half.code == short.code == 1
    assert "short" not in short.out + short.err


def test_what_is_refused_says_why(cynosure: Cynosure) -> None:
    cynosure("realms", "create", "acme")

    taken = cynosure("realms", "create", "acme")
    default = cynosure("realms", "delete", "default")
    missing = cynosure("realms", "reset-root", "nowhere")

    assert (taken.code, default.code, missing.code) == (1, 1, 1)
    assert "There is a realm of this name" in taken.err
    assert "cannot be deleted" in default.err
    assert "Realm does not exist" in missing.err
