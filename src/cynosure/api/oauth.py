"""Tokens over HTTP: the OAuth 2.0 token endpoint of Iceberg clients, and the keys that sign tokens.

Must not break: errors of the token endpoint have OAuth's shape, say nothing about which clients exist, and no
answer that holds a token may be stored on its way.
"""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cynosure.api.asgi import Receive
from cynosure.api.errors import ClientGone
from cynosure.api.messages import Request, Response
from cynosure.api.percent import decode_query
from cynosure.api.realm import realm_of
from cynosure.api.router import Route
from cynosure.auth.audit.denials import Denials, denial_of
from cynosure.auth.tokens.errors import TokenRefused
from cynosure.auth.tokens.issue import IssuedToken, TokenIssuer
from cynosure.auth.tokens.key_store import KeyStore
from cynosure.auth.tokens.signing_keys import public_jwk
from cynosure.common.errors import BadInput, TooLarge
from cynosure.common.secrets import Secret
from cynosure.common.telemetry.request_scope import RequestScope, enter_scope
from cynosure.persistence.spi import RealmId

TOKENS_PATH: Final = "/api/catalog/v1/oauth/tokens"
_MAX_FORM_BYTES: Final = 64 * 1024
_FORM: Final = "application/x-www-form-urlencoded"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_CLIENT_CREDENTIALS: Final = "client_credentials"
_GRANTS: Final = f"Use {_CLIENT_CREDENTIALS} or {_EXCHANGE}."
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name, no token
_TOKEN_TYPES: Final = frozenset({_ACCESS_TOKEN, "urn:ietf:params:oauth:token-type:jwt"})
_STATUS: Final = {"unauthorized_client": 401, "slow_down": 429}


class TokenRequest(Struct, frozen=True):
    """A form. Which fields are needed depends on `grant_type`; others are ignored."""

    grant_type: str
    scope: str = ""
    client_id: str = ""
    client_secret: str = ""
    subject_token: str = ""
    subject_token_type: str = _ACCESS_TOKEN
    actor_token: str = ""
    actor_token_type: str = _ACCESS_TOKEN
    requested_token_type: str = _ACCESS_TOKEN


class TokenAnswer(Struct, frozen=True):
    """A token."""

    access_token: str
    expires_in: int
    scope: str
    token_type: str = "bearer"  # noqa: S105 - a name, no token
    issued_token_type: str = _ACCESS_TOKEN


class OAuthError(Struct, frozen=True):
    """Why there is no token."""

    error: str
    error_description: str


class Jwk(Struct, frozen=True):
    """A public key."""

    kty: str
    use: str
    alg: str
    kid: str
    n: str
    e: str


class JwkSet(Struct, frozen=True):
    """The public keys of a realm's tokens."""

    keys: list[Jwk]


class _Client(NamedTuple):
    id: str
    secret: Secret


def oauth_routes(issuer: TokenIssuer, keys: KeyStore, denials: Denials) -> list[Route]:
    """The token endpoint, and the public keys at both places where clients look for them."""

    async def get_token(request: Request) -> Response:
        realm = realm_of(request.scope)
        # Order: whatever else is wrong, nothing is recorded or remembered for a realm that somebody invented.
        await keys.load(realm)
        basic: str | None = None
        try:
            basic = _find_basic(request)
            issued = await _issue(issuer, request, realm, basic)
        except TokenRefused as error:
            await denials.record(
                denial_of(
                    error, realm=realm, caller=None, request_id=request.request_id, operation="get-token"
                )
            )
            return _refusal(error, is_basic=basic is not None)
        enter_scope(RequestScope(request.request_id, realm, issued.principal))
        answer = TokenAnswer(issued.token.reveal(), issued.lifetime_s, issued.scope)
        return Response.json(answer, headers=_private())

    async def get_keys(request: Request) -> Response:
        good = await keys.load_public(realm_of(request.scope))
        stored = (await keys.load(realm_of(request.scope))).keys
        found = JwkSet([msgspec.convert(public_jwk(key), Jwk) for key in stored if key.kid in good])
        return Response.json(
            found, headers=[(b"cache-control", b"public, max-age=60"), (b"vary", b"Polaris-Realm")]
        )

    return [
        Route(
            "POST",
            TOKENS_PATH,
            get_token,
            operation_id="getToken",
            summary="A token for a client's secret or for another token",
            tags=("oauth",),
            form=TokenRequest,
            responses={200: TokenAnswer, 400: OAuthError, 401: OAuthError, 429: OAuthError},
            is_public=True,
        ),
        *(
            Route(
                "GET",
                path,
                get_keys,
                operation_id=name,
                summary="The public keys that the realm's tokens are signed with",
                tags=("oauth",),
                responses={200: JwkSet},
                is_public=True,
            )
            for path, name in (
                ("/api/catalog/v1/oauth/jwks", "getTokenKeys"),
                ("/.well-known/jwks.json", "getWellKnownTokenKeys"),
            )
        ),
    ]


async def _issue(issuer: TokenIssuer, request: Request, realm: RealmId, basic: str | None) -> IssuedToken:
    form = await _read_form(request)
    grant, scope = form.get("grant_type", ""), form.get("scope", "")
    if not grant:
        raise _invalid("The form has no grant_type", _GRANTS)
    if grant not in (_CLIENT_CREDENTIALS, _EXCHANGE):
        raise TokenRefused("unsupported_grant_type", "This grant is not offered", fix=_GRANTS)
    # Clients that hold a secret renew by an exchange with a Basic header, also when their token has expired.
    if grant == _CLIENT_CREDENTIALS or (basic and not form.get("actor_token")):
        client = _require_client(form, basic)
        return await issuer.issue_for_secret(realm, client.id, client.secret, scope, _peer(request))
    subject = _require_token(form, "subject_token")
    if form.get("requested_token_type", _ACCESS_TOKEN) != _ACCESS_TOKEN:
        raise _invalid("Only access tokens are issued", "Leave requested_token_type out.")
    if "actor_token" in form:
        return await issuer.issue_on_behalf(realm, subject, _require_token(form, "actor_token"), scope)
    return await issuer.issue_for_token(realm, subject, scope)


async def _read_form(request: Request) -> Mapping[str, str]:
    media_type = (request.find_header(b"content-type") or "").partition(";")[0].strip().lower()
    if media_type != _FORM:
        raise _invalid("The body is not a form", f"Send it as {_FORM}.")
    body = await _read_small(request.receive)
    try:
        pairs = decode_query(body)
    except BadInput as error:
        raise _invalid("The form cannot be read", "Percent-encode it as UTF-8.") from error
    form = dict(pairs)
    if len(form) != len(pairs):
        raise _invalid("A field of the form is repeated", "Send each field once.")
    return form


async def _read_small(receive: Receive) -> bytes:
    """The body of a stranger: nothing here is worth more than a few kilobytes of memory."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone("The client closed the connection before the body was complete")
        body += message.get("body", b"")
        if len(body) > _MAX_FORM_BYTES:
            raise TooLarge(
                "The form is larger than any that is good",
                field="body",
                fix="Send only the fields of the token endpoint.",
                max_body_bytes=_MAX_FORM_BYTES,
            )
        if not message.get("more_body", False):
            return bytes(body)


def _find_basic(request: Request) -> str | None:
    """What follows `Basic` in the Authorization header. A bearer token there is nothing that counts here."""
    found: list[bytes] = [value for name, value in request.scope["headers"] if name == b"authorization"]
    if len(found) > 1:
        raise _invalid("The client authenticates twice", "Send one Authorization header.")
    scheme, _, encoded = (found[0] if found else b"").decode("latin-1").partition(" ")
    return encoded.strip() if scheme.lower() == "basic" else None


def _require_client(form: Mapping[str, str], basic: str | None) -> _Client:
    if basic is None:
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
    elif "client_secret" in form:
        raise _invalid("The client authenticates twice", "Use the header or the form.")
    else:
        try:
            client_id, _, secret = b64decode(basic, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise _no_client() from error
    if not client_id or not secret:
        raise _no_client()
    return _Client(client_id, Secret(secret))


def _require_token(form: Mapping[str, str], name: str) -> Secret:
    if not form.get(name):
        raise _invalid("A token is missing in the form", f"Send {name}.")
    if form.get(f"{name}_type", _ACCESS_TOKEN) not in _TOKEN_TYPES:
        raise _invalid("A token is of a type that is not accepted", f"Send {_ACCESS_TOKEN} as {name}_type.")
    return Secret(form[name])


def _peer(request: Request) -> str:
    client = request.scope.get("client")
    return str(client[0]) if client else ""


def _invalid(message: str, fix: str) -> TokenRefused:
    return TokenRefused("invalid_request", message, fix=fix)


def _no_client() -> TokenRefused:
    return TokenRefused(
        "invalid_client",
        "The client does not say who it is",
        fix="Send client_id and client_secret in the form, or both in a Basic header.",
    )


def _private() -> list[tuple[bytes, bytes]]:
    return [(b"cache-control", b"no-store"), (b"pragma", b"no-cache")]


def _refusal(error: TokenRefused, *, is_basic: bool) -> Response:
    headers = _private()
    status = _STATUS.get(error.code, 400)
    if status == 401:
        headers.append((b"www-authenticate", b"Basic" if is_basic else b"Bearer"))
    if error.retry_after_s:
        headers.append((b"retry-after", b"%d" % error.retry_after_s))
    text = f"{error.message}. {error.fix}" if error.fix else error.message
    return Response.json(OAuthError(error.code, text), status=status, headers=headers)
