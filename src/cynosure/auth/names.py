"""What names, properties, client ids and client secrets may be.

Must not break: a message never quotes a secret, also not one that is refused.
"""

from collections.abc import Mapping
from typing import Final

from cynosure.common.errors import BadInput
from cynosure.common.secrets import Secret

MAX_NAME_CHARS: Final = 256
MAX_PROPERTIES_BYTES: Final = 64 * 1024
"""Of one principal or role, keys and values together."""
RESERVED_NAME: Final = "SYSTEM$"
OWN_NAMES: Final = frozenset({"operator", "system", "oidc"})
RESERVED_PROPERTIES: Final = ("polaris.", "cynosure.")

CLIENT_ID_BYTES: Final = 8
CLIENT_SECRET_BYTES: Final = 16
MAX_CLIENT_CHARS: Final = 128
_MIN_SECRET_CHARS: Final = 6
_MAX_SECRET_CHARS: Final = 256


def check_name(name: str, *, field: str = "name") -> str:
    """Refuse what cannot be the name of a principal, role or catalog."""
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise BadInput(
            "A name is empty or too long",
            field=field,
            fix=f"Use 1 to {MAX_NAME_CHARS} characters.",
            characters=len(name),
        )
    if any(ord(each) < 0x20 or 0x7F <= ord(each) < 0xA0 or 0xD800 <= ord(each) < 0xE000 for each in name):
        raise BadInput("A name holds control characters", field=field, fix="Remove them.")
    if name.lstrip().upper().startswith(RESERVED_NAME):
        raise BadInput(
            "The name is reserved", field=field, fix=f"Do not begin it with {RESERVED_NAME}.", name=name
        )
    return name


def check_principal_name(name: str) -> str:
    """As `check_name`, and refuse the names under which the server's own work stands in logs and audit."""
    if check_name(name).strip().lower() in OWN_NAMES:
        raise BadInput(
            "The name is reserved for the server itself", field="name", fix="Choose another one.", name=name
        )
    return name


def check_properties(properties: Mapping[str, str], *, field: str = "properties") -> dict[str, str]:
    """Refuse properties that are reserved, nameless or too large together."""
    size_bytes = 0
    for name, value in properties.items():
        if not name:
            raise BadInput("A property has an empty name", field=field, fix="Name the property.")
        if name.strip().lower().startswith(RESERVED_PROPERTIES):
            raise BadInput(
                "The property is reserved",
                field=field,
                fix=f"Do not begin its name with {' or '.join(RESERVED_PROPERTIES)}",
                property=name[:MAX_NAME_CHARS],
            )
        try:
            size_bytes += len(name.encode()) + len(value.encode())
        except UnicodeEncodeError as error:
            raise BadInput(
                "A property holds half of a surrogate pair", field=field, fix="Send valid Unicode."
            ) from error
    if size_bytes > MAX_PROPERTIES_BYTES:
        raise BadInput(
            "The properties are too large",
            field=field,
            fix="Store less in properties.",
            size_bytes=size_bytes,
            max_bytes=MAX_PROPERTIES_BYTES,
        )
    return dict(properties)


def check_client_id(client_id: str) -> str:
    """Refuse what OAuth clients could not send as a client id; a colon ends it in HTTP Basic."""
    if not 1 <= len(client_id) <= MAX_CLIENT_CHARS or not _is_visible(client_id) or ":" in client_id:
        raise BadInput(
            "Not a client id",
            field="clientId",
            fix=f"Use 1 to {MAX_CLIENT_CHARS} visible ASCII characters without ':'.",
        )
    return client_id


def check_client_secret(secret: Secret) -> Secret:
    """Refuse secrets that could be guessed at the door, or not be sent."""
    text = secret.reveal()
    if not _MIN_SECRET_CHARS <= len(text) <= _MAX_SECRET_CHARS or not _is_visible(text):
        raise BadInput(
            "Not a client secret",
            field="clientSecret",
            fix=f"Use {_MIN_SECRET_CHARS} to {_MAX_SECRET_CHARS} visible ASCII characters.",
        )
    return secret


def _is_visible(text: str) -> bool:
    return all("!" <= each <= "~" for each in text)
