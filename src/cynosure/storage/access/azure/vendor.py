"""Signatures of Azure for clients: for a directory, or for a whole container.

A maintainer must not break: without directories an account knows containers and single blobs only, so a table
that shares its container with others gets no signature there rather than one for all of them.
"""

from cynosure.common.clock import Clock
from cynosure.storage.access.azure.account import Account
from cynosure.storage.access.azure.signature import DelegationKey, sign
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.access.tokens import Renewed
from cynosure.storage.errors import StorageRefused
from cynosure.storage.location import Location


class AzureVendor:
    """Makes signatures. They have no place for a name, so Azure's log shows our application only."""

    def __init__(
        self,
        account: Account,
        signing_keys: Renewed[DelegationKey],
        clock: Clock,
        *,
        lifetime_ms: int,
        has_directories: bool,
    ) -> None:
        self._account = account
        self._signing_keys = signing_keys
        self._clock = clock
        self._lifetime_ms = lifetime_ms
        self._has_directories = has_directories

    async def mint(self, scope: Scope, subject: Subject) -> Vended:  # noqa: D102
        for location in scope.locations:
            if location.segments and not self._has_directories:
                raise StorageRefused(
                    "Credentials for a part of a container cannot be given in this account",
                    location=location.text,
                    fix="Set hierarchical if the account has a hierarchical namespace; else give the table a "
                    "container of its own.",
                )
        key = await self._signing_keys.load(min_left_ms=self._lifetime_ms)
        issued_ms = self._clock.now_us() // 1000
        # Whole seconds, which is all that a signature says.
        expires_ms = min(issued_ms + self._lifetime_ms, key.expires_ms) // 1000 * 1000
        credentials = tuple(
            self._credential(location, key, expires_ms, is_writable=scope.is_writable)
            for location in scope.locations
        )
        return Vended(credentials, issued_ms, expires_ms)

    def _credential(
        self, location: Location, key: DelegationKey, expires_ms: int, *, is_writable: bool
    ) -> Credential:
        signature = sign(
            key,
            account=self._account.name,
            container=location.authority.partition("@")[0],
            directory=location.segments,
            is_writable=is_writable,
            expires_ms=expires_ms,
        )
        host = host_of(location)
        config = {
            "adls.account-name": self._account.name,
            "adls.sas-token": signature,
            f"adls.sas-token.{self._account.name}": signature,
            f"adls.sas-token.{host}": signature,
            f"adls.sas-token-expires-at-ms.{host}": str(expires_ms),
        }
        return Credential(location.text, config)


def host_of(location: Location) -> str:
    """The host of the account as the location spells it, which is how clients look for its signature."""
    return location.text.partition("@")[2].partition("/")[0]
