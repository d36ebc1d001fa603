"""Settings of the auth room."""

from datetime import timedelta

from msgspec import Struct

from cynosure.common.settings import Duration


class TokenSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens that this server issues."""

    lifetime: Duration = timedelta(hours=1)
    """How long a token is good."""
    issuer: str = "cynosure"
    """The `iss` of tokens, and the only one that is accepted of our own."""
    key_lifetime: Duration = timedelta(days=30)
    """A key signs this long; then a new one does. Tokens of the old one stay good until they expire."""


class AuditSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What was done and what was refused."""

    retention: Duration = timedelta(days=365)
    """How long events are kept."""


class AuthSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do what."""

    filter_lists: bool = False
    """Whether lists show, to those who may not list everything, what they may see. Off: such lists are refused."""
    hide_existence: bool = False
    """Whether what a caller may not see is answered as if it did not exist. Off: it is refused with 403."""
    credential_reset: bool = True
    """Whether `root` may set or renew the credentials of other principals."""
    enforce_rotation: bool = True
    """Whether a principal that must rotate its credentials can do nothing else before."""
    tokens: TokenSettings = TokenSettings()
    """See below."""
    audit: AuditSettings = AuditSettings()
    """See below."""
