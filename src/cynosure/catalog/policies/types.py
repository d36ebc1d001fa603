"""What a type of policies is: which content it takes, what it can be attached to, how it is inherited.

Must not break: a type is the word that is stored with a policy. It keeps its meaning, and is never taken away
while policies of it are stored.
"""

from typing import Protocol

from msgspec import Struct

from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.targets import CatalogTarget, NamespaceTarget, TableTarget
from cynosure.persistence.commit import View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import RealmId

Attachable = CatalogTarget | NamespaceTarget | TableTarget
"""What a policy can be attached to."""


class Surroundings(Struct, frozen=True):
    """What a type may look at besides the catalog's state."""

    realm: RealmId
    persistence: Persistence
    tables: RecentTables


class PolicyType(Protocol):
    """One type of policies."""

    @property
    def name(self) -> str:
        """As it is stored and said on the wire."""
        ...

    @property
    def is_inheritable(self) -> bool:
        """Whether it counts for what is below the target, where nothing of its type replaces it."""
        ...

    @property
    def is_restriction(self) -> bool:
        """Whether it restricts what principals read.

        Such policies are managed by those who manage access; a target may have any number of them, and none
        replaces another.
        """
        ...

    def parse(self, content: str) -> object:
        """What the content says; `BadInput` that names the field for content that is not of this type."""
        ...

    async def check_target(
        self, parsed: object, surroundings: Surroundings, view: View, target: Attachable
    ) -> object:
        """Refuse a target that the content does not fit; what is to be kept with the mapping.

        That is anything that msgpack can hold; `None` for nothing.
        """
        ...
