"""Why a remote could not be asked, in a few words of our own: what an operator has to look at.

A maintainer must not break: no text of an error is passed on, which may quote what the remote sent; only its
kind decides. `federation.diagnosing` knows what is to be done about each of these.
"""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import httpx

HOST_UNKNOWN: Final = "its host is not known"
NOTHING_LISTENS: Final = "nothing listens at its address"
NOT_REACHED: Final = "its address cannot be reached"
METADATA_SERVICE: Final = "its host is where a cloud tells its machines their secrets"
NO_ANSWER: Final = "no complete answer in time"
NOT_TRUSTED: Final = "its certificate is not trusted"
OTHER_HOST: Final = "its certificate is for another host"
NO_TLS: Final = "it does not speak TLS there"
NOT_AGREED: Final = "TLS cannot be agreed on with it"
CUT_OFF: Final = "it ends the connection, or speaks another protocol"
TOKENS: Final = "its token endpoint: "
"""What reasons begin with that are about where OAuth's tokens come from."""
NOT_LET_IN: Final = "it does not accept who we are"
NOT_ALLOWED: Final = "it does not allow us to ask this"
NO_CATALOG: Final = "it has no such catalog"
NO_TOKENS: Final = TOKENS + "there is none"
CLIENT_REFUSED: Final = TOKENS + "it does not accept our client"
ROLE_REFUSED: Final = "the token service does not let us assume the role"
NO_TOKEN_SERVICE: Final = "the token service does not answer"  # noqa: S105 - no token
NO_DATABASE: Final = "there is no such database"
NO_TABLES: Final = "the database has no tables of a SQL catalog (iceberg_tables)"
NOT_UNDERSTOOD: Final = "it does not know what it was asked for"

_MISMATCHES: Final = frozenset({62, 64})
"""OpenSSL's numbers for a name, and an address, that is not in the certificate."""
_NO_TLS_SPOKEN: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
_NO_WAY: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EADDRNOTAVAIL})


def name_failure(error: BaseException) -> str:
    """What went wrong, by the first of an error and its causes that says it; else the kind of the error."""
    for each in _walk(error):
        if (found := _name(each)) is not None:
            return found
    return type(error).__name__


def _name(error: BaseException) -> str | None:
    match error:
        case ssl.SSLCertVerificationError():
            return OTHER_HOST if error.verify_code in _MISMATCHES else NOT_TRUSTED
        case ssl.SSLError():
            return NO_TLS if error.reason in _NO_TLS_SPOKEN else NOT_AGREED
        case socket.gaierror():
            return HOST_UNKNOWN
        case ConnectionRefusedError():
            return NOTHING_LISTENS
        case ConnectionResetError() | BrokenPipeError() | httpx.RemoteProtocolError():
            return CUT_OFF
        case httpx.ConnectTimeout():
            return NOT_REACHED
        case TimeoutError() | httpx.TimeoutException():
            return NO_ANSWER
        case OSError() if error.errno in _NO_WAY:
            return NOT_REACHED
        case _:
            return None


def _walk(error: BaseException | None, most: int = 8) -> Iterator[BaseException]:
    """An error, from its innermost cause outwards: the outer ones say less."""
    chain: list[BaseException] = []
    while error is not None and len(chain) < most:
        chain.append(error)
        inner = error.__cause__ or error.__context__
        # Several addresses of one host: each failed in its own way, mostly the same.
        error = inner.exceptions[0] if isinstance(inner, BaseExceptionGroup) else inner
    return reversed(chain)
