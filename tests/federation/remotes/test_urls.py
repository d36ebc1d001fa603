"""Where credentials may be sent."""

import pytest

from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.remotes.rest.addresses import below, is_prefix, is_separator
from cynosure.federation.remotes.urls import check_url
from cynosure.federation.settings import FederationSettings


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/api/catalog/",
        "http://127.0.0.1:8181",
        "http://[::1]:8181/x",
        "http://localhost",
    ],
)
def test_over_tls_or_on_this_machine(url: str):
    assert str(check_url(url, FederationSettings(), "near")) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://169.254.169.254/latest",
        "https://user:password@example.com",
        "https://example.com/?a=b",
        "https://example.com/#a",
        "file:///etc/passwd",
        "ftp://example.com",
        "example.com",
        "https://",
        "",
        "http://[",
    ],
)
def test_nowhere_else(url: str):
    with pytest.raises(RemoteUnavailable) as raised:
        check_url(url, FederationSettings(), "near")

    assert "password" not in str(raised.value)


def test_an_operator_may_allow_plain_http():
    assert (
        check_url("http://example.com", FederationSettings(allow_insecure=True), "near").host == "example.com"
    )


@pytest.mark.parametrize("prefix", ["main", "main%7Cwh", "main|wh", "a/b", "x:y@z"])
def test_what_a_prefix_can_be(prefix: str):
    assert is_prefix(prefix)


@pytest.mark.parametrize(
    "prefix", ["..", "a/../b", "%2e%2E", "a//b", "a?b", "a#b", "a b", "a\r\nb", "ü", "x" * 2000, "."]
)
def test_what_no_prefix_can_be(prefix: str):
    assert not is_prefix(prefix)


@pytest.mark.parametrize(
    ("text", "is_good"), [("\x1f", True), (".", True), ("", False), ("/", False), ("x" * 9, False)]
)
def test_what_separates_levels(text: str, is_good: bool):
    assert is_separator(text) == is_good


def test_paths_are_below_the_url():
    base = check_url("https://example.com/api/catalog/", FederationSettings(), "near")

    assert str(below(base, "v1", "a%1Fb", "c%2Fd")) == "https://example.com/api/catalog/v1/a%1Fb/c%2Fd"
