"""Root credentials in the data directory, for whoever started the server: readable by its owner only.

Credentials are written to a *draft* before they are committed and to their place after it. So those that
are good are never lost, whatever dies in between, and a file in its place never says what is not good.

    root-credentials.json              of the default realm
    root-credentials-REALM.json        of another one
    .root-credentials-REALM.NAME       a draft

Must not break: mode 0600 from the first moment, and no file is ever written over.
"""

import os
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from cynosure.auth.credentials import Credentials
from cynosure.auth.entities import ROOT
from cynosure.common.errors import Misconfigured
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import RealmId


class _Content(Struct, frozen=True):
    realm: str
    principal: str
    client_id: str
    client_secret: str


class CredentialFiles:
    """The files of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write_draft(self, realm: RealmId, credentials: Credentials) -> Path:
        """Keep credentials that are about to be committed."""
        content = _Content(realm, ROOT, credentials.client_id, credentials.client_secret.reveal())
        draft = self._directory / f".root-credentials-{realm}.{secrets.token_hex(8)}"
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(content)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise Misconfigured(
                "The root credentials cannot be written",
                fix="Use a data directory that this user may write, or set CYNOSURE_BOOTSTRAP_CREDENTIALS.",
                directory=str(self._directory),
                reason=error.strerror or type(error).__name__,
            ) from error
        return draft

    def publish(self, draft: Path, realm: RealmId) -> Path | None:
        """Give a draft that was committed its place; where it is now. `None` when another process did."""
        name = "root-credentials" if realm == DEFAULT_REALM else f"root-credentials-{realm}"
        number = 1
        while True:
            # What is there belongs to an earlier store, or to an earlier realm of this name.
            place = self._directory / (f"{name}.json" if number == 1 else f"{name}.{number}.json")
            try:
                os.link(draft, place)
            except FileExistsError:
                if self.find_content(place) == self.find_content(draft):
                    draft.unlink(missing_ok=True)
                    return None
                number += 1
            except FileNotFoundError:
                return None
            else:
                draft.unlink(missing_ok=True)
                self._sync()
                return place

    def discard(self, draft: Path) -> None:
        """Forget a draft that did not come to be."""
        draft.unlink(missing_ok=True)

    def list_drafts(self, realm: RealmId) -> list[Path]:
        """What somebody who died, or is at it right now, left."""
        return sorted(
            path
            for path in self._directory.glob(f".root-credentials-{realm}.*")
            if path.name.removeprefix(f".root-credentials-{realm}.").isalnum()
        )

    def find_content(self, path: Path) -> Credentials | None:
        """The credentials in a file; `None` when it is gone or was not written to its end."""
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_Content)
        except (OSError, msgspec.DecodeError):
            return None
        return Credentials(content.client_id, Secret(content.client_secret))

    def _sync(self) -> None:
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
