"""Client credentials in clear: on their way to whoever asked for them, once, and nowhere else.

Must not break: the secret is a `Secret`, so that printing, logging or encoding it by accident shows nothing.
"""

from typing import Final

from msgspec import Struct, structs

from cynosure.auth.entities import PrincipalEntity, StoredSecret
from cynosure.auth.identities import Identities
from cynosure.auth.names import CLIENT_ID_BYTES, CLIENT_SECRET_BYTES
from cynosure.auth.secret_hash import MAX_SECRETS
from cynosure.common.secrets import Secret


class Credentials(Struct, frozen=True):
    """What a principal authenticates with."""

    client_id: str
    client_secret: Secret


class PrincipalWithCredentials(Struct, frozen=True):
    """A principal, and what it can authenticate with from now on."""

    principal: PrincipalEntity
    credentials: Credentials


FIRST_GENERATION: Final = 1
"""0 stands for no secret of ours (`Identity.credential`)."""


def new_client_id(identities: Identities) -> str:
    """16 hexadecimal digits."""
    return identities.random_hex(CLIENT_ID_BYTES)


def new_client_secret(identities: Identities) -> Secret:
    """32 hexadecimal digits."""
    return Secret(identities.random_hex(CLIENT_SECRET_BYTES))


def with_secret(
    identities: Identities, entity: PrincipalEntity, secret: Secret, *, keep_previous: bool
) -> PrincipalEntity:
    """The principal with another secret; the one before it stays good, or none of the earlier ones does.

    Its generation is greater than any before: the newest secret always stays until a newer one comes.
    """
    generation = 1 + max((each.generation for each in entity.secrets), default=FIRST_GENERATION - 1)
    kept: tuple[StoredSecret, ...] = entity.secrets[: MAX_SECRETS - 1] if keep_previous else ()
    return structs.replace(entity, secrets=(identities.hasher.hash(secret, generation), *kept))
