"""What a change of a federated catalog consists of; `carrying.carry_out` does its parts in their order.

Must not break: `judge` refuses with what was just seen, so an earlier attempt of the same request may be the
reason. It raises `NotFound`, `AlreadyExists`, `Conflict` or `BadInput` (no table takes a snapshot twice) for
what that could have brought about, and those do not end a repeated request.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.receipts import Recall
from cynosure.catalog.guards import Guards
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.remote import RemoteCatalog, Tag
from cynosure.federation.seeing import Federation
from cynosure.persistence.commit import Prepared, State, View

A = TypeVar("A")
"""What the remote answers."""
R = TypeVar("R")
"""What the caller is answered."""


class Scene(NamedTuple):
    """Where a change happens."""

    catalog: OpenCatalog
    """That passes changes on."""
    caller: Caller
    remote: RemoteCatalog
    federation: Federation


class Before(Struct, frozen=True, array_like=True):
    """What the remote had when it was asked, as far as that tells later whether it did it. Stored."""

    uuid: str = ""
    """Of the table or view, in lower case."""
    tag: Tag = Tag()


class Again(Struct, frozen=True):
    """The remote has not done it, and asking once more cannot do it twice."""


AGAIN: Final = Again()


class Write(ABC, Generic[A, R]):
    """One change."""

    name: ClassVar[str]
    """Of the operation, for logs and the change feed."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.catalog = scene.catalog
        self.caller = scene.caller
        self.remote = scene.remote
        self.before = Before()
        """What the remote had when it was first asked; for `keep`."""

    @property
    @abstractmethod
    def recall(self) -> Recall[R]:
        """How the result comes back for a repeated request."""

    @abstractmethod
    async def check(self, view: View) -> Guards:
        """Refuse who may not do it, as the native operation does."""

    @abstractmethod
    async def look(self) -> None:
        """Have in the mirror what the remote has now of all that this is about."""

    @abstractmethod
    async def judge(self, view: State) -> Before:
        """Refuse what the native operation refuses. Nothing has been sent yet."""

    @abstractmethod
    async def send(self, key: str | None) -> A:
        """Ask the remote to do it."""

    @abstractmethod
    async def find(self, before: Before) -> A | Again | None:
        """Whether the remote has done it, by looking at it; `None` when that cannot be told."""

    @abstractmethod
    async def keep(self, view: View, answer: A) -> Prepared[R]:
        """The change that has in the mirror what the remote answered; and what the caller is answered."""

    def note(self, asked_s: float) -> None:
        """Called when the mirror has it: what was seen need not be asked for. `asked_s`: when it was."""
