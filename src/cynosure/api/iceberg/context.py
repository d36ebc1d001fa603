"""Who asks, of which catalog, about what: read from the request the same way by every handler.

Must not break: a realm that is named is either the one that answers or refused; never ignored.
"""

from cynosure.api.messages import Request
from cynosure.catalog.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier, Namespace, check_name, parse_namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import NotFound
from cynosure.persistence.references import DEFAULT_REALM

ROOT = "root"
"""The principal of every request on a server that authenticates nobody; it listens on loopback only."""


def caller_of(request: Request) -> Caller:
    """The caller behind a request."""
    realm = request.find_header(b"polaris-realm")
    if realm is not None and realm != DEFAULT_REALM:
        raise NotFound(
            "This server has no such realm",
            fix=f"Leave the Polaris-Realm header out, or send {DEFAULT_REALM!r}.",
            realm=realm,
        )
    return Caller(ROOT, DEFAULT_REALM, request.request_id)


async def catalog_of(directory: Directory, caller: Caller, request: Request) -> OpenCatalog:
    """The catalog that the path names."""
    return await directory.open(caller.realm, request.params["prefix"])


def namespace_of(request: Request) -> Namespace:
    """The namespace that the path names."""
    return parse_namespace(request.params["namespace"])


def table_of(request: Request) -> Identifier:
    """The table that the path names."""
    return Identifier(namespace_of(request), check_name(request.params["table"], field="table"))


def view_of(request: Request) -> Identifier:
    """The view that the path names."""
    return Identifier(namespace_of(request), check_name(request.params["view"], field="view"))
