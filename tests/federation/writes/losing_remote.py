"""A remote whose answers get lost, before or after it has done what it was asked; and one that takes keys."""

from collections.abc import Callable
from typing import Any

from cynosure.common.errors import BadInput, OutcomeUnknown
from cynosure.federation.remote import Abilities
from cynosure.testing.memory_remote import MemoryRemote

CHANGES = frozenset(
    {
        "create_namespace",
        "update_namespace",
        "drop_namespace",
        "create_table",
        "register_table",
        "commit_table",
        "commit_transaction",
        "drop_table",
        "rename_table",
        "create_view",
        "register_view",
        "commit_view",
        "drop_view",
        "rename_view",
    }
)


class Killed(BaseException):
    """The process that asks is no more."""


class LosingRemote(MemoryRemote):
    """Loses the answers to the next changes."""

    def __init__(self, *, takes_keys: bool = False, is_forgetful: bool = False) -> None:
        super().__init__(
            Abilities(
                has_views=True,
                has_nested_namespaces=True,
                has_transactions=True,
                takes_keys=takes_keys,
                registers_views=True,
            )
        )
        self.is_forgetful = is_forgetful
        """Whether it says that it takes keys, and does not honour them."""
        self.lost: list[str] = []
        """What happens to the next changes, in turn: `before`, `after`, or `killed` after it; `refused`; or
        `overtaken`: an earlier attempt at the same arrives right before it."""
        self.done: list[str] = []
        """Changes that were carried out."""
        self.keys: dict[str, Any] = {}
        """What requests with keys were answered."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return self._losing(name, found) if name in CHANGES else found

    def _losing(self, name: str, change: Callable[..., Any]) -> Callable[..., Any]:
        async def answer(*args: Any, key: str | None = None, **more: Any) -> Any:
            fate = self.lost.pop(0) if self.lost else ""
            if fate == "before":
                raise OutcomeUnknown("The question was lost")
            if fate == "refused":
                raise BadInput("Not again", field="body", fix="Send something else.")
            if fate == "overtaken":
                await change(*args, **more)
                self.done.append(name)
            if key is not None and self.abilities.takes_keys and not self.is_forgetful and key in self.keys:
                told = self.keys[key]
            else:
                told = await change(*args, **more)
                self.done.append(name)
                if key is not None:
                    self.keys[key] = told
            if fate == "after":
                raise OutcomeUnknown("The answer was lost")
            if fate == "killed":
                raise Killed
            return told

        return answer
