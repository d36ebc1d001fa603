"""Who asks, of which catalog, about what: read from the request the same way by every handler.

Must not break: the caller is who the gate let in, and nobody else.
"""

from functools import lru_cache

from cynosure.api import asgi
from cynosure.api.catalogs import Catalogs
from cynosure.api.messages import Request
from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier, Namespace, check_name, parse_namespace
from cynosure.catalog.opened import OpenCatalog


def caller_of(request: Request) -> Caller:
    """The caller behind a request."""
    caller: Caller = request.scope[asgi.CALLER]
    return caller


async def catalog_of(catalogs: Catalogs, caller: Caller, request: Request) -> OpenCatalog:
    """The catalog that the path names. What else it names is seen first, if there is a remote behind it."""
    return await catalogs.open_for(caller, request.params["prefix"], request.params)


async def open_of(catalogs: Catalogs, caller: Caller, request: Request) -> OpenCatalog:
    """The catalog that the path names, as it is, for operations that ask a remote themselves."""
    return await catalogs.open_unseen(caller, request.params["prefix"])


def namespace_of(request: Request) -> Namespace:
    """The namespace that the path names."""
    return parse_namespace(request.params["namespace"])


def table_of(request: Request) -> Identifier:
    """The table that the path names."""
    return _table(request.params["namespace"], request.params["table"])


@lru_cache(maxsize=1_024)
def _table(namespace: str, name: str) -> Identifier:
    # Remembered: clients load the same tables again and again, and this is what each time begins with.
    return Identifier(parse_namespace(namespace), check_name(name, field="table"))


def view_of(request: Request) -> Identifier:
    """The view that the path names."""
    return Identifier(namespace_of(request), check_name(request.params["view"], field="view"))
