"""The key of a service account, as Google gives it out in a file.

A maintainer must not break: only keys are accepted. Files for other ways to log in name URLs, files and
programs to be asked for a token, and whoever sets a catalog's key would choose what this server runs.
"""

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret
from cynosure.storage.config import GcsKeys


class _KeyFile(Struct):
    type: str
    client_email: str = ""
    private_key_id: str = ""
    private_key: str = ""


def parse_service_account_key(text: str, *, field: str) -> GcsKeys:
    """The key in a file. `BadInput` blames `field` and shows nothing of it."""
    try:
        found = msgspec.json.decode(text, type=_KeyFile)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise _refuse(field, "it is not JSON with the fields of such a key") from None
    if found.type != "service_account":
        raise _refuse(field, "its type is another one")
    if not (found.client_email.isascii() and "@" in found.client_email and found.private_key_id.isascii()):
        raise _refuse(field, "it does not say whose it is")
    if not is_usable(found.private_key):
        raise _refuse(field, "its private key cannot be read")
    return GcsKeys(found.client_email, found.private_key_id, Secret(found.private_key))


def is_usable(private_key: str) -> bool:
    """Whether this is the text of a private key that can sign."""
    try:
        return isinstance(load_pem_private_key(private_key.encode(), password=None), RSAPrivateKey)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


def _refuse(field: str, reason: str) -> BadInput:
    return BadInput(
        "This is not the key of a service account",
        field=field,
        fix="Give the whole JSON file that Google made for a key of the service account.",
        reason=reason,
    )
