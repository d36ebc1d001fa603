"""When properties that a catalog gave a client end."""

from collections.abc import Mapping
from typing import Final

_EXPIRIES: Final = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at")
_EXPIRY_OF_SIGNATURE: Final = "adls.sas-token-expires-at-ms."


def find_expiry_ms(properties: Mapping[str, str]) -> int:
    """When properties end, by what they say themselves; 0: they do not say."""
    found = [
        int(value)
        for name, value in properties.items()
        if (name in _EXPIRIES or name.startswith(_EXPIRY_OF_SIGNATURE)) and value.isdecimal()
    ]
    return min(found, default=0)
