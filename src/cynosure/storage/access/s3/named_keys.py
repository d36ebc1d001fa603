"""Access keys that an operator configures under a name, and which catalogs may use them.

Whoever may create a catalog could otherwise have the server open any bucket that a named key opens, or send
requests that are signed with it to a server of their own. So a name is good only inside the locations, at the
endpoints and in the realms that the operator wrote beside it.

A maintainer must not break: every address that a configuration names is looked at, also those for clients.
"""

from cynosure.common.errors import BadInput
from cynosure.storage.config import Owner, S3Storage, allowed_locations
from cynosure.storage.location import Location, is_allowed
from cynosure.storage.settings import StorageCredentials, StorageSettings


def find_named(config: S3Storage, owner: Owner, settings: StorageSettings) -> StorageCredentials | None:
    """The named key of a configuration without one of its own; `BadInput` when it may not use it.

    `None` when there is none of this name: then it is only a label.
    """
    if config.sealed_keys is not None or config.storage_name is None:
        return None
    found = settings.credentials.get(config.storage_name)
    if found is None:
        return None
    served = [Location.parse(text) for text in found.locations]
    if not all(is_allowed(location, served) for location in allowed_locations(config)):
        raise _refuse(config, "These locations are not open to the named credentials", "allowedLocations")
    listed = {_plain(url) for url in found.endpoints}
    for field, url in (
        ("endpoint", config.endpoint),
        ("endpointInternal", config.endpoint_internal),
        ("stsEndpoint", config.sts.endpoint),
    ):
        if url is not None and _plain(url) not in listed:
            raise _refuse(config, "This endpoint is not open to the named credentials", field)
    if listed and config.endpoint is None and config.endpoint_internal is None:
        raise _refuse(config, "Amazon's endpoint is not open to the named credentials", "endpoint")
    if found.realms and owner[0] not in found.realms:
        raise _refuse(config, "The named credentials are not open to this realm", "storageName")
    return found


def _plain(url: str) -> str:
    return url.removesuffix("/").lower()


def _refuse(config: S3Storage, message: str, field: str) -> BadInput:
    return BadInput(
        message,
        field=field,
        fix="Keep to what storage.credentials allows for this name, or give the catalog a key of its own.",
        storage_name=config.storage_name,
    )
