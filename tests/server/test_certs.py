import stat
from pathlib import Path

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.errors import AlreadyExists, BadInput, NotFound
from cynosure.server.certs import init_certs, show_certs

CLOCK = SystemClock()


def make(directory: Path, **more):
    values = {"hosts": ["localhost", "::1"], "client": "etl", "days": 10} | more
    return init_certs(directory, clock=CLOCK, **values)


def test_keys_are_private_and_certificates_name_what_was_asked_for(tmp_path: Path) -> None:
    made = {Path(found.file).name: found for found in make(tmp_path / "certs")}

    assert {name: found.subject for name, found in made.items()} == {
        "ca.pem": "CN=Cynosure CA",
        "server.pem": "CN=localhost",
        "client.pem": "CN=etl",
        "catalog.pem": "CN=cynosure-catalog",
        "delegation.pem": "CN=cynosure-delegation",
    }
    assert made["server.pem"].names == ["localhost", "::1"]
    assert not any(found.is_expired for found in made.values())
    keys = sorted((tmp_path / "certs").glob("*.key"))
    assert [key.stem for key in keys] == ["ca", "catalog", "client", "delegation", "server"]
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert stat.S_IMODE((tmp_path / "certs").stat().st_mode) == 0o700


def test_nothing_that_exists_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "server.key").write_text("precious")

    with pytest.raises(AlreadyExists) as caught:
        make(tmp_path)

    assert caught.value.details["files"] == ["server.key"]
    assert (tmp_path / "server.key").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["server.key"]


@pytest.mark.parametrize("wrong", [{"hosts": ["müller.example"]}, {"client": "x" * 65}, {"client": ""}])
def test_names_that_cannot_stand_in_a_certificate_are_refused(tmp_path: Path, wrong) -> None:
    with pytest.raises(BadInput):
        make(tmp_path / "certs", **wrong)


def test_showing_what_is_not_there_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="certs init"):
        show_certs(tmp_path, clock=CLOCK)
