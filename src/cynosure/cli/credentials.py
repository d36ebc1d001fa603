"""New credentials into a file that only its owner can read.

Must not break: the file is there before the secret is made, so that no secret is lost because it cannot be
written; and nothing that exists is overwritten.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cynosure.common.errors import BadInput

if TYPE_CHECKING:
    from cynosure.client.management_types import Credentials


class CredentialsFile:
    """A new file of mode 0600: one line of JSON for each principal."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path | None) -> "CredentialsFile | None":
        """Make the file; nothing when none is asked for."""
        if path is None:
            return None
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError as error:
            raise BadInput(
                "The credentials file exists already",
                field="--credentials-file",
                fix="Name another file, or move this one away.",
                path=str(path),
            ) from error
        except OSError as error:
            raise BadInput(
                "The credentials file cannot be made",
                field="--credentials-file",
                fix="Name a file in a directory that you can write to.",
                path=str(path),
                reason=error.strerror or str(error),
            ) from error
        return cls(path)

    def add(self, principal: str, credentials: "Credentials") -> None:
        """Append the credentials of a principal, safely on disk when this returns."""
        import msgspec

        line = {
            "principal": principal,
            "clientId": credentials.client_id,
            "clientSecret": credentials.client_secret,
        }
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def remove_if_empty(self) -> None:
        """Leave no file behind when nothing was made."""
        if self.path.stat().st_size == 0:
            self.path.unlink()
