"""`cynosure catalogs check` as its users meet it."""

import json
from pathlib import Path

from cynosure.testing.s3_servers import S3Server
from tests.cli.running import Cynosure


def create(cynosure: Cynosure, server: S3Server, location: str, secret: str) -> None:
    Path("secret").write_text(secret)
    made = cynosure(
        *("catalogs", "create", "lake", "--location", location, "--s3-path-style"),
        *("--s3-endpoint", server.endpoint, "--s3-region", server.region),
        *("--s3-access-key-id", server.access_key_id, "--s3-secret-access-key-file", "secret"),
    )
    assert made.code == 0, made.err


def test_a_storage_that_works_is_shown_as_a_table(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake")

    shown = cynosure("catalogs", "check", "lake")
    as_json = cynosure("catalogs", "check", "lake", "--json")

    assert (shown.code, as_json.code, shown.err) == (0, 0, "")
    heading, first, *_ = shown.out.splitlines()
    assert heading.split() == ["LOCATION", "STEP", "OUTCOME", "MS", "WHY"]
    assert first.split()[1:3] == ["write", "ok"]
    assert json.loads(as_json.out)["ok"] is True


def test_what_failed_is_told_with_its_fix_and_ends_with_1(
    cynosure: Cynosure, plain_s3_server: S3Server
) -> None:
    create(cynosure, plain_s3_server, plain_s3_server.fresh_location(), "wrong-secret-of-a-test")

    shown = cynosure("catalogs", "check", "lake")
    as_json = cynosure("catalogs", "check", "lake", "--json")

    assert shown.code == as_json.code == 1
    assert "FAILED" in shown.out
    assert "code=SignatureDoesNotMatch" in shown.out
    assert shown.err.startswith("Fix: Check addresses, keys")
    assert json.loads(as_json.out)["steps"][0]["details"]["code"] == "SignatureDoesNotMatch"
    assert "wrong-secret-of-a-test" not in shown.out + shown.err + as_json.out


def test_a_catalog_that_is_not_there_is_an_error(cynosure: Cynosure) -> None:
    cynosure("catalogs", "create", "lake")

    missing = cynosure("catalogs", "check", "none")

    assert missing.code == 1
    assert missing.err.startswith("Error: ")
