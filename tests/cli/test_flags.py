"""Which server a command means, and with whose credentials."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from cynosure.cli.flags import Flags, Local, choose_server
from cynosure.cli.transport import check_url, find_credentials
from cynosure.client.profiles import Profile, Profiles
from cynosure.common.errors import BadInput, Misconfigured, NotAuthenticated

PROD = Profile("https://prod", client_id="alice", client_secret="of alice")
TEST = Profile("https://test")
KNOWN = Profiles({"prod": PROD, "test": TEST})


@pytest.mark.parametrize(
    ("flags", "environment", "default", "expected"),
    [
        ({}, {}, "", Local()),
        ({}, {}, "test", TEST),
        ({}, {"CYNOSURE_URL": "http://e"}, "test", Profile("http://e")),
        ({}, {"CYNOSURE_PROFILE": "prod"}, "test", PROD),
        ({"url": "http://f"}, {"CYNOSURE_URL": "http://e"}, "test", Profile("http://f")),
        ({"profile": "prod"}, {"CYNOSURE_URL": "http://e"}, "test", PROD),
        ({"data": Path("d")}, {"CYNOSURE_URL": "http://e"}, "test", Local()),
        ({"store": "memory:"}, {"CYNOSURE_PROFILE": "prod"}, "test", Local()),
    ],
)
def test_flags_win_over_the_environment_and_that_over_the_default(
    flags: dict[str, Any], environment: dict[str, str], default: str, expected: Any
) -> None:
    known = Profiles(KNOWN.profiles, default)

    assert choose_server(Flags(**flags), environment, known) == expected


def test_a_url_beside_a_profile_replaces_only_its_address() -> None:
    chosen = choose_server(Flags(url="https://other", profile="prod"), {}, KNOWN)

    assert isinstance(chosen, Profile)
    assert (chosen.url, chosen.client_id) == ("https://other", "alice")


@pytest.mark.parametrize("remote", [{"url": "http://x"}, {"profile": "prod"}])
@pytest.mark.parametrize("local", [{"data": Path("d")}, {"store": "memory:"}, {"config": Path("c")}])
def test_two_servers_at_once_are_refused(remote: dict[str, Any], local: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="Two servers"):
        choose_server(Flags(**remote, **local), {}, KNOWN)


BOTH = {"CYNOSURE_CLIENT_ID": "bob", "CYNOSURE_CLIENT_SECRET": "of bob"}


@pytest.mark.parametrize(
    ("flags", "environment", "expected"),
    [
        ({}, {}, ("alice", "of alice")),
        ({}, BOTH, ("bob", "of bob")),
        ({"client_id": "carol", "client_secret_env": "MINE"}, BOTH, ("carol", "of carol")),
        ({"client_secret_env": "MINE"}, {}, ("alice", "of carol")),
        ({"client_secret_file": "-"}, {}, ("alice", "from stdin")),
    ],
)
def test_a_client_id_goes_with_its_own_secret(
    monkeypatch: pytest.MonkeyPatch,
    flags: dict[str, Any],
    environment: dict[str, str],
    expected: tuple[str, str],
) -> None:
    monkeypatch.setenv("MINE", "of carol")
    monkeypatch.setattr(sys, "stdin", io.StringIO("from stdin\n"))

    found = find_credentials(Flags(**flags), environment, PROD)

    assert (found.client_id, found.client_secret.reveal()) == expected


@pytest.mark.parametrize(
    ("flags", "profile", "words"),
    [
        ({}, TEST, "no client id"),
        ({"client_id": "carol"}, PROD, "No secret"),
        ({}, Profile("https://x", client_id="dave"), "No secret"),
    ],
)
def test_without_credentials_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, flags: dict[str, Any], profile: Profile, words: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    with pytest.raises(NotAuthenticated, match=words):
        find_credentials(Flags(**flags), {}, profile)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://catalog.example.org/", "https://catalog.example.org"),
        ("http://127.0.0.1:8181/api/catalog", "http://127.0.0.1:8181"),
        ("http://localhost:8181", "http://localhost:8181"),
        ("http://[::1]:8181", "http://[::1]:8181"),
        ("https://proxy/behind/api/catalog/", "https://proxy/behind"),
    ],
)
def test_the_address_is_the_servers_or_what_engines_are_given(url: str, base: str) -> None:
    assert check_url(url, is_plain_allowed=False) == base


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:8181", "http://catalog.example.org", "http://127.0.0.1.evil.org"]
)
def test_a_secret_does_not_leave_the_machine_without_tls_unless_it_may(url: str) -> None:
    with pytest.raises(Misconfigured, match="without TLS"):
        check_url(url, is_plain_allowed=False)

    assert check_url(url, is_plain_allowed=True) == url


@pytest.mark.parametrize("url", ["catalog:8181", "ftp://x", "http://", "https://alice:hunter2@x"])
def test_what_is_no_address_is_refused_without_repeating_credentials(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_url(url, is_plain_allowed=True)

    assert "hunter2" not in str(caught.value)
