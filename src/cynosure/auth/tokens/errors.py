"""What is wrong with a token or a request for one, extending the one tree.

A maintainer must not break: no text here depends on a secret or on whether a client, name or account exists.
What a stranger may be told about a token is what the token itself says.
"""

from typing import Literal

from cynosure.common.errors import CynosureError, NotAuthenticated

OAuthCode = Literal[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "slow_down",
]


class TokenRefused(CynosureError):
    """No token is issued. `code` is the word that OAuth 2.0 has for it."""

    def __init__(self, code: OAuthCode, message: str, *, fix: str = "", retry_after_s: int = 0) -> None:
        super().__init__(message, fix=fix, code=code)
        self.code = code
        self.retry_after_s = retry_after_s


def bad_token(reason: str) -> NotAuthenticated:
    """The refusal of a token. `reason` is one of a few constant phrases."""
    return NotAuthenticated("The token is not good", fix="Get a new token and send that.", reason=reason)
