"""Settings of the auth room."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from cynosure.common.errors import Misconfigured
from cynosure.common.quantities import format_duration
from cynosure.common.secrets import Secret
from cynosure.common.settings import Duration, Texts


class TokenSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens that this server issues."""

    lifetime: Duration = timedelta(hours=1)
    """How long a token is good."""
    renewable: Duration = timedelta(days=1)
    """How long a token can be exchanged for a new one, counted from the secret that the first was given for.
    A client that keeps its secret is not concerned."""
    issuer: str = "cynosure"
    """The `iss` of tokens, and the only one that is accepted of our own."""
    key_lifetime: Duration = timedelta(days=30)
    """A key signs this long; then a new one does. Tokens of the old one stay good until they expire."""


class OidcSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Another issuer whose tokens are accepted: an OpenID provider. `NAME` is yours to choose."""

    issuer: str
    """The `iss` of its tokens, exactly as it is written there."""
    audience: Texts
    """The `aud` that its tokens are meant for; one of them must be in a token."""
    realms: Texts = ("default",)
    """The realms that its tokens open."""
    jwks_uri: str = ""
    """Where its keys are. Left out: its discovery document says it."""
    algorithms: Texts = ("RS256",)
    """Signatures that are accepted; asymmetric ones only."""
    ca: Path | None = None
    """PEM file with the authorities to trust when its keys are fetched. Left out: those of the system."""
    first_use: Literal["match", "provision"] = "match"
    """What an account's first token does. `match`: it is bound to the principal of its name, which must exist
    and not be bound to another account. `provision`: a principal of its name is made; if there is one, the
    account is refused."""
    name_claim: str = "sub"
    """Claim that names the principal. Choose another than `sub` only if users cannot choose its value."""
    groups_claim: str = "groups"
    """Claim with the groups of the subject: its name, or a path with dots into objects."""
    roles: dict[str, str] = field(default_factory=dict)
    """The principal role that a group stands for, by group. Goes before prefix and pattern."""
    role_prefix: str = ""
    """Groups that begin with this stand for the principal role of the rest of their name."""
    role_pattern: str = ""
    """Regular expression. Groups that match it as a whole stand for the role of `role_replacement`."""
    role_replacement: str = "\\1"
    """The name of the role, with the groups of the pattern as \\1 to \\9."""
    required_claims: dict[str, str] = field(default_factory=dict)
    """Claims that a token must have with exactly this text, or with a list that holds it."""


class WebhookSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Audit events posted to an address, as CloudEvents 1.0."""

    url: Secret | None = None
    """Where to. A secret, because such addresses often hold one. Left out: nowhere."""
    secret: Secret | None = None
    """Signs every request as Standard Webhooks has it: text, or `whsec_` and base64."""
    headers: dict[str, Secret] = field(default_factory=dict)
    """Headers to send along, such as `authorization`. An underscore in a name stands for a dash."""
    mode: Literal["batch", "single"] = "batch"
    """Whether a request holds several events or one."""
    batch_events: Annotated[int, Meta(ge=1, le=1_000)] = 100
    """Most events of one request."""
    timeout: Duration = timedelta(seconds=10)
    """How long one request may take before it counts as failed."""


class AuditSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What was done and what was refused."""

    retention: Duration = timedelta(days=365)
    """How long events are kept. Cursors into them live as long."""
    collect_every: Duration = timedelta(seconds=5)
    """How often new commits become events by themselves. Whoever reads events sees all of them anyway."""
    authentication_failures_per_minute: Annotated[int, Meta(ge=1, le=60_000)] = 60
    """Most failed authentications of a realm that one process writes; the rest is counted."""
    denials_per_minute: Annotated[int, Meta(ge=1, le=60_000)] = 120
    """Most refusals of one principal that one process writes, beyond the first thousand. The rest is in the
    log, and counted."""
    file: Path | None = None
    """File that events are appended to, as lines of JSON. Left out: none."""
    webhook: WebhookSettings = WebhookSettings()
    """See below."""


class AuthSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do what."""

    filter_lists: bool = False
    """Whether lists show, to those who may not list everything, what they may see. Off: such lists are
    refused."""
    hide_existence: bool = False
    """Whether what a caller may not see is answered as if it did not exist. Off: it is refused with 403."""
    credential_reset: bool = True
    """Whether `root` may set or renew the credentials of other principals."""
    enforce_rotation: bool = True
    """Whether a principal that must rotate its credentials can do nothing else before."""
    tokens: TokenSettings = TokenSettings()
    """See below."""
    oidc: dict[str, OidcSettings] = field(default_factory=dict)
    """See below."""
    audit: AuditSettings = AuditSettings()
    """See below."""


def check_audit(settings: AuditSettings, history_retention: timedelta) -> None:
    """Refuse lifetimes by which changes were gone before they are told, or events before they are read."""
    for name, longer in (
        ("persistence.gc.history_retention", history_retention),
        ("auth.audit.retention", settings.retention),
    ):
        if settings.collect_every >= longer:
            raise Misconfigured(
                "Two lifetimes contradict each other",
                fix=f"Make auth.audit.collect_every shorter than {name}.",
                **{"auth.audit.collect_every": format_duration(settings.collect_every)},
                **{name: format_duration(longer)},
            )
