"""The two questions of this room as contracts: who is this, and may they.

Other packages answer them by implementing these; `authenticator_kit` and `authorizer_kit` of
`cynosure.testing` hold them to what is promised here.

Must not break: both fail closed. What cannot be decided is refused.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac.operations import Operation
from cynosure.persistence.commit import View
from cynosure.persistence.spi import CatalogId, ObjId, RealmId, RefKey


class Authenticator(Protocol):
    """Turns what a request carries into a caller."""

    async def authenticate(self, token: str, realm: RealmId) -> Caller:
        """The caller a bearer token stands for, with the roles active now. `NotAuthenticated` for any other.

        `NotFound` for a realm that does not exist, whatever the token, also an empty one.
        A token of a principal, secret, role or actor that has been taken away is refused with the next call,
        on every server.
        """
        ...


class Target(Protocol):
    """What an operation is about, by name, and the way to it by stable ids."""

    @property
    def kind(self) -> str:
        """As in `Operation.kinds`."""
        ...

    @property
    def name(self) -> str:
        """As messages name it."""
        ...

    @property
    def catalog(self) -> CatalogId | None:
        """The catalog it is in, or is; `None` for what belongs to the realm."""
        ...

    def walk(self, view: View) -> AsyncIterator[ObjId]:
        """Stable ids below the catalog, outermost first, its own last; of a catalog or the realm: none.

        Asked for one by one, and only as far as needed. Raises the error for something that does not exist.
        """
        ...

    def place(self, depth: int) -> tuple[str, str]:
        """Kind and name of what step `depth` of the walk is, counted from 0; for explanations."""
        ...


class Missing(Struct, frozen=True):
    """A privilege that would have been needed."""

    privilege: str
    target_kind: str
    target: str


class GrantStep(Struct, frozen=True):
    """Why a privilege is held: principal, principal role, catalog role, the grant."""

    needed: str
    held: str
    """The privilege that satisfies it."""
    principal_role: str
    catalog_role: str
    """Empty for what a principal role holds on the realm itself."""
    on_kind: str
    on: str
    """Where it is granted: the target or something above it."""
    target: str


class Decision(Struct, frozen=True):
    """Whether an operation may be done."""

    is_allowed: bool
    missing: tuple[Missing, ...] = ()
    reason: str = ""
    """Why it was refused other than for a missing privilege, or allowed without one."""
    path: tuple[GrantStep, ...] = ()
    """Filled only when it was asked for."""
    guards: Mapping[RefKey, ObjId] = {}
    """Heads the decision rests on. A commit checks them again (`Prepared.guards`)."""


class Authorizer(Protocol):
    """Decides what a caller may do."""

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        """Whether `caller` may do `operation` to `targets`, as names are in `view` and rights are now.

        `view` is of the catalog's `main`; `None` when no target is inside a catalog. What it raises about a
        target that does not exist passes through.
        """
        ...
