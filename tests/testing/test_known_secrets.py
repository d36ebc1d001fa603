"""The search finds a secret wherever it was written, and says where without saying it again."""

import base64
import json
import secrets
from pathlib import Path

import pytest

from cynosure.testing.known_secrets import KnownSecrets


@pytest.fixture
def secret() -> str:
    return secrets.token_hex(16)


@pytest.fixture
def known(secret: str) -> KnownSecrets:
    known = KnownSecrets()
    known.add(secret, client_id="root")
    return known


@pytest.mark.parametrize(
    "template",
    [
        "{}",
        '{{"client_secret":"{}"}}',
        "grant_type=client_credentials&client_secret={}&scope=x",
        "0{}a",
        "\x00\x81\xa6{}7\xa1",
        "https://root:{}@host/",
    ],
)
def test_a_secret_is_found_whatever_stands_around_it(
    known: KnownSecrets, secret: str, template: str, tmp_path: Path
):
    file = tmp_path / "some" / "file.bin"
    file.parent.mkdir()
    file.write_bytes(b"x" * 5000 + template.format(secret).encode("latin-1"))

    leaks = list(known.search(tmp_path))

    assert [(leak.where, leak.what) for leak in leaks] == [(str(file), "a client secret")]
    assert leaks[0].offset == 5000 + template.index("{}") - template[: template.index("{}")].count("{{")
    assert secret not in repr(leaks)


def test_a_basic_header_is_found(known: KnownSecrets, secret: str):
    header = b"Authorization: Basic " + base64.b64encode(f"root:{secret}".encode())

    assert [leak.what for leak in known.search_bytes(header, "log")] == ["a client secret in base64"]


def test_a_signed_token_is_found_although_nobody_named_it(known: KnownSecrets):
    parts = [base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "n": n}).encode()) for n in (1, 2)]
    token = b".".join([*parts, base64.urlsafe_b64encode(secrets.token_bytes(256))]).replace(b"=", b"")

    assert [leak.what for leak in known.search_bytes(b"token: " + token, "log")] == ["a signed token"]


def test_what_a_server_made_for_itself_is_known_from_its_file_and_allowed_there_only(tmp_path: Path):
    made = secrets.token_hex(16)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "root-credentials.json").write_text(json.dumps({"default": {"clientSecret": made}}))
    (tmp_path / "catalog.log").write_text(f"root has {made}\n")
    known = KnownSecrets()

    known.add_credentials_files(tmp_path)

    assert [leak.where for leak in known.search(tmp_path)] == [str(tmp_path / "catalog.log")]


def test_what_is_gone_when_it_is_looked_for_ends_no_search(known: KnownSecrets, tmp_path: Path):
    (tmp_path / "root-credentials.json").symlink_to(tmp_path / "gone.json")

    known.add_credentials_files(tmp_path)
    known.add_credentials_files(tmp_path / "gone")

    assert list(known.search(tmp_path)) == []


def test_nothing_is_found_where_nothing_is(known: KnownSecrets, tmp_path: Path):
    (tmp_path / "a.log").write_text(secrets.token_hex(16) + " eyJub3RhdG9rZW4.x.y\n")
    (tmp_path / "empty").touch()

    assert list(known.search(tmp_path)) == []


@pytest.mark.parametrize("bad", ["short", "", "with a blank in it, and long enough"])
def test_a_secret_that_could_not_be_found_is_not_accepted(bad: str):
    with pytest.raises(ValueError, match="searched for"):
        KnownSecrets().add(bad)
