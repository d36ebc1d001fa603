"""Master keys at rest: from settings, or in a key file that only its owner can read.

The file is replaced as a whole and never half-written: losing it loses every stored secret. Back it up
apart from the store it protects.
"""

import base64
import binascii
import os
import stat
from pathlib import Path

import msgspec
from msgspec import Struct

from cynosure.common.errors import Misconfigured
from cynosure.common.keyring import KEY_BYTES, Keyring, RandomBytes
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.common.secrets import Secret


class _KeyFile(Struct, frozen=True, forbid_unknown_fields=True):
    primary: str
    keys: dict[str, str]


def open_keyring(
    settings: KeyringSettings, data_dir: Path, random_bytes: RandomBytes = os.urandom
) -> Keyring:
    """The keyring of the settings, else of the key file, which is made when it is missing."""
    if settings.keys:
        primary = settings.primary or (next(iter(settings.keys)) if len(settings.keys) == 1 else None)
        if primary is None:
            raise Misconfigured(
                "Several master keys and none is primary",
                key_ids=sorted(settings.keys),
                fix="Set keyring.primary to the id of the key that encrypts.",
            )
        keys = {key_id: _decode_key(key_id, secret) for key_id, secret in settings.keys.items()}
        return Keyring(keys, primary, random_bytes)
    path = data_dir / settings.file
    if not path.exists():
        first = _KeyFile(primary="k1", keys={"k1": _new_key(random_bytes)})
        _write(path, first, may_replace=False)
    stored = _read(path)
    keys = {key_id: _decode_key(key_id, Secret(text)) for key_id, text in stored.keys.items()}
    return Keyring(keys, settings.primary or stored.primary, random_bytes)


def add_primary_key(path: Path, random_bytes: RandomBytes = os.urandom) -> str:
    """Add a new primary key to a key file and return its id. Older keys stay and still decrypt.

    Servers use it after their next start; one operator at a time.
    """
    stored = _read(path)
    number = len(stored.keys) + 1
    while f"k{number}" in stored.keys:
        number += 1
    key_id = f"k{number}"
    _write(path, _KeyFile(key_id, {**stored.keys, key_id: _new_key(random_bytes)}), may_replace=True)
    return key_id


def _new_key(random_bytes: RandomBytes) -> str:
    return base64.b64encode(random_bytes(KEY_BYTES)).decode("ascii")


def _decode_key(key_id: str, secret: Secret) -> bytes:
    try:
        return base64.b64decode(secret.reveal(), validate=True)
    except (binascii.Error, ValueError):
        # Without `from`: the cause may quote a part of the key.
        raise Misconfigured(
            "A master key is not base64",
            key_id=key_id,
            fix="Write 32 random bytes in base64, for example from `openssl rand -base64 32`.",
        ) from None


def _read(path: Path) -> _KeyFile:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise Misconfigured(
                "The key file can be read by others",
                file=str(path),
                mode=f"{mode:04o}",
                fix=f"Run `chmod 600 {path}`, and rotate the keys if someone may have read them.",
            )
        return msgspec.json.decode(path.read_bytes(), type=_KeyFile)
    except (OSError, msgspec.DecodeError) as error:
        reason = type(error).__name__
    raise Misconfigured(
        "The key file cannot be read",
        file=str(path),
        reason=reason,
        fix="Restore it from its backup. Without it, stored secrets cannot be decrypted.",
    )


def _write(path: Path, content: _KeyFile, *, may_replace: bool) -> None:
    try:
        _write_durably(
            path, msgspec.json.format(msgspec.json.encode(content)) + b"\n", may_replace=may_replace
        )
    except OSError as error:
        raise Misconfigured(
            "The key file cannot be written",
            file=str(path),
            reason=error.strerror or type(error).__name__,
            fix="Use a data directory on a local disk that this user may write, or set keyring.keys.",
        ) from error


def _write_durably(path: Path, content: bytes, *, may_replace: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # Order: durable before visible. A key that encrypts and is then lost takes its data along.
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if may_replace:
            os.replace(draft, path)
        else:
            _link_unless_there(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _link_unless_there(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        # Another process of this server was first; its keys are the ones to use.
        return
