"""What our own tokens say.

Must not break: a token names its principal by stable id and says which secret it was obtained with; what the
principal may do is not in it.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from cynosure.auth.caller import Identity
from cynosure.auth.tokens.errors import TokenRefused, bad_token
from cynosure.auth.tokens.scopes import format_scope, parse_scope
from cynosure.persistence.spi import MAX_ID, ObjId, RealmId

TOKEN_TYPE: Final = "at+jwt"  # noqa: S105 - the `typ` of RFC 9068
_HEADER: Final = frozenset({"alg", "kid", "typ"})


class Actor(Struct, frozen=True):
    """The service that acts for the subject (RFC 8693)."""

    sub: str
    principal_id: int = field(name="principalId")
    generation: int = 0


class Claims(Struct, frozen=True, omit_defaults=True):
    """The body of a token."""

    iss: str
    aud: str
    sub: str
    """Name of the principal when the token was issued; for readers, never looked up."""
    principal_id: int = field(name="principalId")
    client_id: str
    scope: str
    realm: str
    generation: int
    """Of the secret it was obtained with; 0 when another issuer vouched for the subject."""
    jti: str
    iat: int
    exp: int
    auth_time: int = 0
    """When the principal showed the secret, or the token of another issuer, that it goes back to. Older ones
    do not say."""
    roles: tuple[str, ...] = ()
    """Roles that another issuer said the subject has."""
    act: Actor | None = None


def audience_of(issuer: str, realm: RealmId) -> str:
    """The `aud` of a realm's tokens."""
    return f"{issuer}/{realm}"


def check_header(header: Mapping[str, Any]) -> str:
    """The id of the key that a token of ours names. A header that we do not write is refused."""
    kid = header.get("kid")
    if header.keys() != _HEADER or header["typ"] != TOKEN_TYPE or not isinstance(kid, str):
        raise bad_token("malformed")
    return kid


def identity_of(claims: Mapping[str, Any], issuer: str, realm: RealmId) -> Identity:
    """Whom a token stands for. Signature and times were checked before."""
    try:
        said = msgspec.convert(claims, Claims)
        scope = parse_scope(said.scope)
    except (msgspec.ValidationError, TokenRefused) as error:
        raise bad_token("malformed") from error
    if said.iss != issuer:
        raise bad_token("wrong issuer")
    if said.realm != realm or said.aud != audience_of(issuer, realm):
        raise bad_token("wrong realm")
    act = said.act
    numbers = (said.principal_id, said.generation, *((act.principal_id, act.generation) if act else ()))
    if not all(0 <= number <= MAX_ID for number in numbers):
        raise bad_token("malformed")
    return Identity(
        ObjId(said.principal_id),
        credential=said.generation,
        scope=scope,
        external_roles=said.roles,
        actor_id=ObjId(act.principal_id if act else 0),
        actor_credential=act.generation if act else 0,
    )


def began_of(claims: Mapping[str, Any]) -> int:
    """When a token of ours goes back to, in seconds. `identity_of` has read it before."""
    began_s: int = claims.get("auth_time") or claims["iat"]
    return began_s


def scope_of(identity: Identity) -> str:
    """The `scope` claim of an identity."""
    return format_scope(identity.scope)
