"""A principal for a service, with a principal role of the same name and its credentials in a file.

A maintainer must not break: the secret goes into a file of mode 0600 and nowhere else, and the file is made
before the secret is.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from cynosure.cli.credentials import CredentialsFile

if TYPE_CHECKING:
    from cynosure.cli.transport import Server


async def make_service_principal(
    server: "Server", name: str, credentials_file: Path, *, is_trusted: bool = False
) -> bool:
    """Make the principal unless it is there; whether it was made, and so its credentials written.

    `is_trusted`: it may act on behalf of others, also if it was there already.
    """
    from contextlib import suppress

    from cynosure.common.errors import AlreadyExists, NotFound

    management = server.management
    with suppress(AlreadyExists):
        await management.create_principal_role(name, {})
    file: CredentialsFile | None = None
    try:
        try:
            await management.load_principal(name)
        except NotFound:
            file = CredentialsFile.open(credentials_file)
            made = await management.create_principal(name, {})
            if file is not None:
                file.add(name, made.credentials)
        await management.assign_principal_role(name, name)
        if is_trusted:
            await management.trust_service(name, is_trusted=True)
    finally:
        if file is not None:
            file.remove_if_empty()
    return file is not None
