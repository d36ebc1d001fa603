"""Settings of the keyring, apart from it: whoever reads settings does without cryptography."""

from pathlib import Path

from msgspec import Struct, field

from cynosure.common.secrets import Secret


class KeyringSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Master keys that encrypt stored secrets."""

    file: Path = Path("keyring.json")
    """Key file, relative to the data directory; made on first start with mode 0600. Not used when
    `keyring.keys` is set. Servers that share a store must share the keys."""
    keys: dict[str, Secret] = field(default_factory=dict)
    """Master keys by id, each 32 bytes in base64. The environment gives ids in lower case."""
    primary: str | None = None
    """Id of the key that encrypts; the others only decrypt. May be left out when there is one key."""
