"""What a storage configuration gives once it is opened."""

from collections.abc import Mapping

from msgspec import Struct

from cynosure.storage.access.ports import Signer
from cynosure.storage.access.vending import Vending
from cynosure.storage.fileio import FileIO


class Storage(Struct, frozen=True, eq=False):
    """What one configuration gives."""

    files: FileIO
    """As the server itself reaches them."""
    client_config: Mapping[str, str] = {}
    """What every client is told, without secrets: region, endpoint."""
    vending: Vending | None = None
    """`None` where the store gives no credentials."""
    signer: Signer | None = None
    """`None` where there is nothing to sign."""
    scan_vending: Vending | None = None
    """Of shorter life, for whoever renews them while it reads; `None`: as the others."""
