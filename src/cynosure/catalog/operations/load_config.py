"""What clients of a catalog are told when they begin: its properties, but for the server's own."""

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.properties import is_for_clients


async def load_config(directory: Directory, caller: Caller, name: str) -> dict[str, str]:
    """The properties for clients who have any role in the catalog, or may load it."""
    await directory.require_seen(caller, name)
    properties = (await directory.open(caller.realm, name)).entity.properties
    return {key: value for key, value in properties.items() if is_for_clients(key, value)}
