import socket
import stat
import sys
from pathlib import Path

import pytest

from cynosure.client.unix_socket import is_answering
from cynosure.common.errors import Misconfigured
from cynosure.server.listen import is_private, listen_operator, listen_tcp, url_of


def test_port_zero_takes_a_free_port_and_the_url_tells_it() -> None:
    with listen_tcp("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]

        assert url_of(listener, "127.0.0.1", is_tls=False) == f"http://127.0.0.1:{port}"
        assert url_of(listener, "0.0.0.0", is_tls=True) == f"https://127.0.0.1:{port}"
        assert url_of(listener, "::1", is_tls=True) == f"https://[::1]:{port}"


def test_a_port_in_use_an_unknown_host_and_a_foreign_address_are_told_apart() -> None:
    with listen_tcp("127.0.0.1", 0) as listener, pytest.raises(Misconfigured, match="already in use"):
        listen_tcp("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(Misconfigured, match="cannot be resolved"):
        listen_tcp("no.such.host.invalid", 0)
    with pytest.raises(Misconfigured, match="does not have that address"):
        listen_tcp("192.0.2.1", 0)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.0.2.1", "no.such.host.invalid"])
def test_an_address_that_other_machines_may_reach_is_not_private(host: str) -> None:
    assert not is_private(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_an_address_of_this_machine_only_is_private(host: str) -> None:
    assert is_private(host)


def test_an_operator_socket_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    """I22."""
    path = tmp_path / "operator.sock"

    with listen_operator(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert is_answering(path)

    assert list(tmp_path.iterdir()) == []


def test_a_socket_that_nobody_listens_on_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "operator.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    assert not is_answering(path)

    with listen_operator(path):
        with pytest.raises(Misconfigured, match="Another server answers"), listen_operator(path):
            pass
        assert is_answering(path)


def test_what_a_successor_put_in_its_place_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "operator.sock"

    with listen_operator(path):
        path.unlink()
        path.write_text("someone else's")

    assert path.read_text() == "someone else's"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse, with a message")
def test_a_path_beyond_the_limit_of_the_operating_system_works(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    directory.mkdir()

    with listen_operator(directory / "operator.sock"):
        assert is_answering(directory / "operator.sock")


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be made"), listen_operator(tmp_path / "no" / "x.sock"):
        pass
