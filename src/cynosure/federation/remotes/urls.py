"""URLs that remotes may be asked at.

A maintainer must not break: what carries credentials goes over TLS or stays on this machine, unless an
operator allows otherwise; and no URL brings a user, a query or a fragment of its own.
"""

import ipaddress

import httpx

from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.settings import FederationSettings


def check_url(text: str, settings: FederationSettings, catalog: str) -> httpx.URL:
    """A URL to which credentials may be sent. `RemoteUnavailable` when it is none, with the reason."""
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise RemoteUnavailable(catalog, reason="the connection's URL cannot be read") from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise RemoteUnavailable(catalog, reason="the connection's URL is not a plain https://HOST/PATH")
    if url.scheme == "http" and not settings.allow_insecure and not is_this_host(url.host):
        raise RemoteUnavailable(catalog, reason="plain HTTP is not allowed (federation.allow_insecure)")
    return url


def is_this_host(host: str) -> bool:
    """Whether what is sent there stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
