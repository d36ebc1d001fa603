"""Client credentials in clear: on their way to whoever asked for them, and nowhere else.

Who asked with an Idempotency-Key and was not answered asks again, and gets the same ones: they are in the
receipt of the commit, sealed under that key, which the store does not have.

Must not break: the secret is a `Secret`, so that printing, logging or encoding it by accident shows nothing.
"""

from typing import Final

from msgspec import Struct, structs

from cynosure.auth.entities import PrincipalEntity, StoredSecret
from cynosure.auth.identities import Identities
from cynosure.auth.names import CLIENT_ID_BYTES, CLIENT_SECRET_BYTES
from cynosure.auth.receipts import Done, Recall, Sealed
from cynosure.auth.request_key import RequestKey
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


class _Shown(Struct, frozen=True, array_like=True):
    """What was shown, in the form that is sealed: a `Secret` itself cannot be encoded."""

    principal: PrincipalEntity
    client_secret: str


class _Showing:
    """Shows credentials again to a request with the same Idempotency-Key."""

    def __init__(self) -> None:
        self._sealed: Recall[_Shown] = Sealed(_Shown)

    def keep(self, result: PrincipalWithCredentials, key: RequestKey) -> bytes:
        secret = result.credentials.client_secret.reveal()
        return self._sealed.keep(_Shown(result.principal, secret), key)

    async def recall(self, done: Done) -> PrincipalWithCredentials:
        shown = await self._sealed.recall(done)
        return show(shown.principal, Secret(shown.client_secret))


RECALL_CREDENTIALS: Final[Recall[PrincipalWithCredentials]] = _Showing()

FIRST_GENERATION: Final = 1
"""0 stands for no secret of ours (`Identity.credential`)."""


def show(principal: PrincipalEntity, secret: Secret) -> PrincipalWithCredentials:
    """The principal with this secret of it, in clear."""
    return PrincipalWithCredentials(principal, Credentials(principal.client_id, secret))


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
