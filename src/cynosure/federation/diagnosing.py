"""What an operator can do about a remote that does not work: which part of the connection says it wrong.

For who may look at the catalog's definition. Others are told that there is trouble, and whom to ask.

Must not break: what is said here is ours, and made of the connection's own fields. Nothing that the remote
said is repeated.
"""

from typing import Final

from msgspec import Struct

from cynosure.catalog.check_connection import FIELD
from cynosure.catalog.connection import Authentication, Bearer, Connection, Implicit, OAuth, Password, SigV4
from cynosure.common.errors import CynosureError
from cynosure.federation.errors import FederationOff, RemoteMisbehaved, RemoteRefused
from cynosure.federation.remotes import failures as why
from cynosure.federation.remotes.hive.thrift import NOT_THRIFT

_AUTHENTICATION: Final = "authenticationParameters"
_FIXES: Final = {
    why.HOST_UNKNOWN: "Correct the host, or have this server's name service know it.",
    why.NOTHING_LISTENS: "Correct host and port, or start it.",
    why.NOT_REACHED: "Correct host and port, or open the way from this server to it.",
    why.METADATA_SERVICE: "Give the address of the catalog.",
    why.NO_ANSWER: "See whether it is up and reached from this server; federation.timeout, if it is slow.",
    why.NOT_TRUSTED: "Have federation.ca_file name the authority that issued it, in the server's settings.",
    why.OTHER_HOST: "Write the host that its certificate names.",
    why.NO_TLS: "Correct the port, or have TLS switched on there; federation.allow_insecure does without.",
    why.NOT_AGREED: "See which versions of TLS it takes (1.2 and later are spoken here); it may want a "
    "client's certificate, which there is none of.",
    why.CUT_OFF: "Correct host and port: see that this kind of catalog is there, and not another service.",
    why.NO_DATABASE: "Name a database that is there, at the end of the URI.",
    why.NO_TABLES: "Name the database that has them, or create them with PyIceberg.",
    NOT_THRIFT: "Correct host and port. A metastore that wants SASL, TLS or HTTP cannot be asked.",
    why.NOT_UNDERSTOOD: "See that a Hive Metastore is there, of version 3.1 or later.",
    "a redirect": "Write the address that it redirects to: redirects are not followed.",
}
"""By reason: what to do about the address."""
_ANOTHER: Final = "Correct it: another service, or a proxy, answers there."
_WRONG_PATH: Final = "Correct the path: what is asked first is v1/config below it."


class Advice(Struct, frozen=True):
    """What is wrong with a connection, and how it is mended."""

    reason: str
    field: str | None = None
    """As the management API names it; `None`: no part of the connection is wrong."""
    fix: str | None = None


def advise(error: CynosureError, connection: Connection) -> Advice:
    """What to do about the error that a question to a remote ended with."""
    told = error.details.get("reason") or error.details.get("problem") or error.message
    reason = str(told)
    if isinstance(error, FederationOff):
        return Advice(reason, None, error.fix)
    if isinstance(error, RemoteRefused):
        return _advise_refused(reason, connection)
    authentication = connection.authentication
    inner = reason.removeprefix(why.TOKENS)
    field = "uri"
    if inner != reason and isinstance(authentication, OAuth) and authentication.token_uri is not None:
        field = "tokenUri"
    elif reason == why.NO_TOKEN_SERVICE:
        return _advice(reason, "stsEndpoint", "Correct it, or the region; or open the way to it.")
    if (fix := _FIXES.get(inner)) is not None:
        return _advice(reason, field, fix)
    if isinstance(error, RemoteMisbehaved):
        is_path = connection.type == "ICEBERG_REST" and inner in ("status 404", "status 405")
        return _advice(reason, field, _WRONG_PATH if is_path else _ANOTHER)
    return Advice(reason, None, "Ask again in a moment. If it stays so, look at the remote.")


def _advise_refused(reason: str, connection: Connection) -> Advice:
    authentication = connection.authentication
    if reason == why.NO_CATALOG:
        return _advice(reason, "remoteCatalogName", "Give the name that its clients call the warehouse.")
    if reason == why.NO_TOKENS:
        has_own = isinstance(authentication, OAuth) and authentication.token_uri is not None
        fix = "Correct it; tokens are asked for at tokenUri, else at v1/oauth/tokens below uri."
        return _advice(reason, "tokenUri" if has_own else "uri", fix)
    if reason in (why.NO_DATABASE, why.NOT_UNDERSTOOD):
        return _advice(reason, "uri", _FIXES[reason])
    if reason == why.ROLE_REFUSED:
        return _advice(reason, "roleArn", "Correct it and externalId, or have its owner trust our key.")
    if reason == why.NOT_ALLOWED:
        return Advice(reason, None, "Have whoever runs it grant us this.")
    return _advice(reason, *_name_proof(authentication))


def _name_proof(authentication: Authentication) -> tuple[str, str]:
    """What of the proof is to be looked at first, and what else."""
    match authentication:
        case OAuth():
            return "clientSecret", "Give the right one; or correct clientId, or scopes."
        case Bearer():
            return "bearerToken", "Give another: it is wrong, or has ended."
        case SigV4():
            fix = "Give the right one; or correct accessKeyId, signingRegion, or the clock of this server."
            return "secretAccessKey", fix
        case Password():
            return "password", "Give the right one; or correct user."
        case Implicit():
            return "authenticationType", "Choose another: it wants to know who asks."


def _advice(reason: str, field: str, fix: str) -> Advice:
    outer = FIELD if field in ("uri", "remoteCatalogName") else f"{FIELD}.{_AUTHENTICATION}"
    return Advice(reason, f"{outer}.{field}", fix)
