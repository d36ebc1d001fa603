"""Addresses that nobody on the way can listen to: HTTPS, or this machine.

A maintainer must not break: a name other than `localhost` is not looked up, so whether an address is safe
never depends on what a name server says today.
"""

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether a host, as it is written, is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_safe_url(url: str) -> bool:
    """Whether nobody on the way could read or change what goes there: HTTPS, or on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))
