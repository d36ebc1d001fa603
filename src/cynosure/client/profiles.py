"""Servers that a user speaks to by name: a file of mode 0600 in the user's configuration directory.

Must not break: the file is never readable by others, not even for a moment, and one that is gets refused.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from cynosure.common.errors import Misconfigured

_FILE: Final = Path("cynosure", "profiles.json")


class Profile(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One server, and who asks there."""

    url: str
    realm: str = ""
    client_id: str = ""
    client_secret: str = ""
    """Empty: it comes from a flag or the environment with each call."""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    gateway: str = ""
    """Where SQL goes. Empty: port 8184 of the same host."""
    plain_http: bool = False
    """Whether the secret may go over HTTP without TLS to another machine."""

    def __repr__(self) -> str:
        return f"Profile({self.url!r}, ***)"


class Profiles(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """All of them, and the one that is used when none is named."""

    profiles: dict[str, Profile] = field(default_factory=dict)
    default: str = ""

    def get(self, name: str) -> Profile:
        """The profile of this name; `Misconfigured` when there is none."""
        found = self.profiles.get(name)
        if found is None:
            raise Misconfigured(
                "There is no such profile",
                fix="See cynosure profiles list; make one with cynosure profiles create NAME --url URL.",
                profile=name,
                known=sorted(self.profiles),
            )
        return found


def profiles_path(environment: Mapping[str, str]) -> Path:
    """Where the profiles of this user are."""
    home = environment.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / _FILE


def load_profiles(path: Path) -> Profiles:
    """What the file holds; nothing when there is none."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read()
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        raise Misconfigured(
            "The profiles cannot be read",
            fix="Make the file readable for this user.",
            path=str(path),
            reason=error.strerror or str(error),
        ) from error
    if mode & 0o077:
        raise Misconfigured(
            "Other users can read the profiles, which may hold secrets",
            fix=f"Run: chmod 600 {path}, and rotate the credentials in it.",
            path=str(path),
            mode=f"{mode:04o}",
        )
    try:
        return msgspec.json.decode(text, type=Profiles)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(
            "The profiles are not what they must be",
            fix="Correct the file, or remove it and make the profiles anew.",
            path=str(path),
            reason=str(error),
        ) from error


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replace the file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    # Order: private from its first byte on, complete on disk before it takes the old one's place.
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(profiles), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
