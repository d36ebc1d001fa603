"""What the operations of a simulation mean, on plain dictionaries.

Written without the code under test: no views, no indexes, no objects. A state is replaced, never changed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from cynosure.testing.sim.operations import ACCOUNTS, OPENING_BALANCE, SHARED, Operation


class Refused(Exception):
    """The operation does not apply to this state; the text is the error's type."""


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity. Ids are left out where they cannot be foretold."""

    stable_id: int
    location: str
    counter: int


@dataclass(slots=True)
class ModelState:
    """All entities by name."""

    things: dict[str, Thing] = field(default_factory=dict)

    def apply(self, operation: Operation, result: Any = None) -> tuple["ModelState", Any]:
        """The state after an operation, and its result. `result` is only asked for new stable ids."""
        changed = ModelState(dict(self.things))
        answer = _MEANING[operation.kind](changed.things, result, *operation.args)
        return changed, answer

    @property
    def balance(self) -> int:
        """Sum over all accounts; transfers keep it."""
        return sum(thing.counter for name, thing in self.things.items() if name.startswith("account-"))

    def overlapping_locations(self) -> list[tuple[str, str]]:
        """Pairs of equal or nested locations; there must be none."""
        locations = sorted(thing.location for thing in self.things.values())
        # In order, whatever lies inside a location follows it at once.
        return [(a, b) for a, b in pairwise(locations) if b.startswith(a)]


Things = dict[str, Thing]


def _thing(things: Things, name: str) -> Thing:
    if name not in things:
        raise Refused("NotFound")
    return things[name]


def _is_free(things: Things, location: str) -> bool:
    return not any(
        location.startswith(thing.location) or thing.location.startswith(location)
        for thing in things.values()
    )


def _open(things: Things, result: Any) -> None:
    for number in range(ACCOUNTS):
        things.setdefault(f"account-{number}", Thing(0, f"accounts/{number}/", OPENING_BALANCE))


def _increment(things: Things, result: Any, name: str, by: int) -> int:
    thing = _thing(things, name)
    things[name] = replace(thing, counter=thing.counter + by)
    return thing.counter + by


def _set_if(things: Things, result: Any, name: str, expected: int, counter: int) -> int:
    thing = _thing(things, name)
    if thing.counter != expected:
        raise Refused("Conflict")
    things[name] = replace(thing, counter=counter)
    return counter


def _create(things: Things, result: Any, name: str, location: str) -> Any:
    if name in things:
        raise Refused("AlreadyExists")
    if not _is_free(things, location):
        raise Refused("Conflict")
    things[name] = Thing(result, location, 0)
    return result


def _ensure(things: Things, result: Any, name: str, location: str) -> Any:
    return things[name].stable_id if name in things else _create(things, result, name, location)


def _rename(things: Things, result: Any, name: str, new_name: str) -> int:
    thing = _thing(things, name)
    if new_name in things:
        raise Refused("AlreadyExists")
    things[new_name] = things.pop(name)
    return thing.stable_id


def _drop(things: Things, result: Any, name: str) -> int:
    _thing(things, name)
    return things.pop(name).counter


def _drop_first(things: Things, result: Any, prefix: str) -> str:
    names = sorted(name for name in things if name.startswith(prefix))
    if not names:
        raise Refused("NotFound")
    del things[names[0]]
    return names[0]


def _tally(things: Things, result: Any, prefix: str) -> int:
    total = sum(name.startswith(prefix) for name in things)
    tally = things.get(f"tally-{prefix}", Thing(0, f"tallies/{prefix}/", 0))
    things[f"tally-{prefix}"] = replace(tally, counter=total)
    return total


def _transfer(things: Things, result: Any, source: str, target: str, amount: int) -> list[int]:
    paying, paid = _thing(things, source), _thing(things, target)
    if paying.counter < amount:
        raise Refused("Conflict")
    things[source] = replace(paying, counter=paying.counter - amount)
    things[target] = replace(paid, counter=paid.counter + amount)
    return [things[source].counter, things[target].counter]


def _join(things: Things, result: Any, name: str, members: int) -> Any:
    """One of those that were counted at once: they follow each other."""
    if name.startswith(SHARED):
        things.setdefault(name, Thing(0, f"{name}/", 0))
    thing = _thing(things, name)
    things[name] = replace(thing, counter=thing.counter + 1)
    if result is None:
        return None
    before, told, _ = result
    return result if told == members and before <= thing.counter < before + members else [thing.counter]


def _read(things: Things, result: Any, name: str) -> int:
    return _thing(things, name).counter


_MEANING: dict[str, Callable[..., Any]] = {
    "open": _open,
    "increment": _increment,
    "set-if": _set_if,
    "create": _create,
    "ensure": _ensure,
    "rename": _rename,
    "drop": _drop,
    "drop-first": _drop_first,
    "tally": _tally,
    "transfer": _transfer,
    "join": _join,
    "read": _read,
}
