"""Drives a migration of a federated catalog, from its first request to the last.

What is done is kept by the server, so whoever drives may be killed at any time and begin again: `move` goes
on from where it was.

A maintainer must not break: nothing is begun before a survey found no obstacle, unless it is said that what
cannot be moved stays behind.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct, structs

_MOST_ROUNDS: Final = 10
"""Through all namespaces: more are needed only while tables are made at the remote."""


class MovedObject(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What became of one object."""

    type: str
    path: tuple[str, ...]
    outcome: str
    reason: str = ""


class MigrationState(Struct, frozen=True, rename="camel"):
    """The server's answer to one step."""

    phase: str
    objects: tuple[MovedObject, ...] = ()
    next_page_token: str | None = None
    into: str | None = None
    """The catalog that gets the tables; none where the catalog itself becomes ours."""
    room: int | None = None
    """How many locations that one can have besides those that it has."""


class Choices(Struct, frozen=True, rename="camel"):
    """How to move a catalog."""

    keep_remote: bool = False
    leave_behind: bool = False
    writers_stopped: bool = False
    namespaces: tuple[tuple[str, ...], ...] = ()
    """Only what is in these; with `tables` empty, too: everything."""
    tables: tuple[tuple[str, ...], ...] = ()
    """Only these tables and views."""
    into: str = ""
    """The catalog that gets them; empty: the catalog itself becomes ours."""
    leave_policies: bool = False

    def has_whole(self, namespace: tuple[str, ...]) -> bool:
        """Whether all that is in a namespace is moved."""
        if not self.namespaces and not self.tables:
            return True
        return any(namespace[: len(each)] == each for each in self.namespaces)

    def to_step(self, name: str) -> dict[str, Any]:
        """A step that says what is chosen."""
        chosen = structs.asdict(self)
        return {"step": name, **{_WIRE[field]: value for field, value in chosen.items() if value}}


_WIRE: Final = {
    "keep_remote": "keepRemote",
    "leave_behind": "leaveBehind",
    "writers_stopped": "writersStopped",
    "namespaces": "namespaces",
    "tables": "tables",
    "into": "into",
    "leave_policies": "leavePolicies",
}
_NOT_THERE: Final = "the remote has no table or view of this name, and none was moved"
_NO_NAMESPACE: Final = "the remote has no namespace of this name, and nothing was moved from one"
_IN_PLACE: Final = "the catalog was moved in place, and nothing of it into this one"
_TOO_MANY: Final = (
    "the other catalog can have {} locations more; move whole namespaces, or the catalog in place"
)


class Moved(Struct, frozen=True, rename="camel"):
    """What came of it."""

    phase: str
    objects: list[MovedObject]
    into: str | None = None
    """The catalog that got the tables; none where the catalog itself became ours."""

    @property
    def obstacles(self) -> list[MovedObject]:
        """What cannot be moved."""
        return [each for each in self.objects if each.outcome == "obstacle"]


_SURVEYED: Final = ("step", "namespaces", "tables", "into", "leavePolicies")
Ask = Callable[[Mapping[str, Any]], Awaitable[MigrationState]]
"""Sends one step."""
Note = Callable[[str, int], None]
"""Told what is being done, and how many objects were seen."""


class Migration:
    """One catalog on its way."""

    def __init__(self, ask: Ask, note: Note = lambda _doing, _seen: None) -> None:
        self._ask = ask
        self._note = note
        self._found: dict[tuple[str, tuple[str, ...]], MovedObject] = {}
        self._was_moved = False
        """Whether some of what is chosen was moved before."""
        self._missing = False
        """Whether something is in the way that cannot be left behind."""
        self._room: int | None = None
        self._into: str | None = None

    async def survey(self, choices: Choices | None = None) -> Moved:
        """What could be moved, and what not. Nothing is changed."""
        choices = choices or Choices()
        self._into = choices.into or None
        step = choices.to_step("survey")
        await self._walk({name: value for name, value in step.items() if name in _SURVEYED})
        if choices.into:
            await self._recall(choices)
        self._find_missing(choices)
        return await self._tell()

    async def move(self, choices: Choices) -> Moved:
        """Move the catalog. It is done if the phase says so; else obstacles say why it was not."""
        phase = (await self._ask({"step": "status"})).phase
        if phase == "done":
            return await self._end_again(choices)
        if phase == "none":
            surveyed = await self.survey(choices)
            if self._missing or (surveyed.obstacles and not choices.leave_behind):
                return surveyed
            if self._was_moved and not self._has_more(choices):
                return self._end(choices)
        begun = await self._ask(choices.to_step("begin"))
        self._into = begun.into
        if begun.phase == "taking":
            await self._take()
            if not choices.leave_behind and (await self._tell()).obstacles:
                return await self._tell()
        if begun.into is not None and begun.phase != "releasing" and not await self._give():
            return await self._tell()
        if any(each.outcome == "obstacle" for each in await self._gather("release")):
            return await self._tell()
        await self._ask({"step": "finish"})
        return self._end(choices)

    async def cancel(self) -> Moved:
        """Put everything back."""
        await self._gather("cancel")
        return await self._tell()

    async def _take(self) -> None:
        for _ in range(_MOST_ROUNDS):
            if not await self._walk({"step": "take"}):
                break
        await self._gather("settle")

    async def _give(self) -> bool:
        """Have all that was taken in the other catalog; whether it is there."""
        await self._ask({"step": "cede"})
        return not any(each.outcome == "obstacle" for each in await self._gather("give"))

    async def _recall(self, choices: Choices) -> None:
        """Have what was moved before, where the remote has nothing of the name."""
        seen, step = self._found, choices.to_step("moved")
        self._found = {}
        async for _ in self._pages({name: value for name, value in step.items() if name in _SURVEYED}):
            self._was_moved = True
        self._found |= seen

    def _has_more(self, choices: Choices) -> bool:
        """Whether anything that is chosen could be moved now."""
        ready = [each for each in self._found.values() if each.outcome == "ready"]
        return any(each.type != "namespace" or choices.has_whole(each.path) for each in ready)

    async def _end_again(self, choices: Choices) -> Moved:
        """What there is to say when the catalog itself became ours before."""
        self._into = choices.into or None
        if choices.into or choices.tables:
            await self._recall(choices)
        if choices.into and not self._was_moved:
            self._found["catalog", (choices.into,)] = MovedObject(
                "catalog", (choices.into,), "obstacle", _IN_PLACE
            )
        self._find_missing(structs.replace(choices, namespaces=()))
        return self._end(structs.replace(choices, leave_behind=False))

    def _find_missing(self, choices: Choices) -> None:
        """Tell of what was named and is not there, and of more than the other catalog can have."""
        for path in choices.tables:
            if not {("table", path), ("view", path)} & self._found.keys():
                self._missing = True
                self._found["table", path] = MovedObject("table", path, "obstacle", _NOT_THERE)
        for path in choices.namespaces:
            if not any(each[: len(path)] == path for _, each in self._found):
                self._missing = True
                self._found["namespace", path] = MovedObject("namespace", path, "obstacle", _NO_NAMESPACE)
        if self._room is None:
            return
        # At the least: a directory for all of a namespace, a place for each of the others.
        ready = [each.path for each in self._found.values() if _is_ready(each)]
        is_compact = not choices.leave_behind
        whole = {path[:-1] for path in ready if is_compact and choices.has_whole(path[:-1])}
        single = [path for path in ready if path[:-1] not in whole]
        if len(whole) + len(single) > self._room:
            self._missing = True
            reason = _TOO_MANY.format(self._room)
            self._found["catalog", (choices.into,)] = MovedObject(
                "catalog", (choices.into,), "obstacle", reason
            )

    async def _walk(self, step: Mapping[str, Any]) -> bool:
        """Go through all namespaces; whether a table or view was found to be there or here."""
        is_new = False
        left: list[tuple[str, ...]] = [()]
        while left:
            namespace = left.pop()
            for kind in ("namespace", "table", "view") if namespace else ("namespace",):
                async for each in self._pages({**step, "type": kind, "namespace": namespace}):
                    if kind != "namespace":
                        is_new = is_new or each.outcome == "taken"
                    elif each.outcome in ("ready", "there", "taken"):
                        left.append(each.path)
        return is_new

    async def _gather(self, step: str) -> list[MovedObject]:
        return [each async for each in self._pages({"step": step})]

    async def _pages(self, step: Mapping[str, Any]) -> AsyncIterator[MovedObject]:
        token: str | None = None
        while True:
            asked = step if token is None else {**step, "pageToken": token}
            page = await self._ask(asked)
            self._room = page.room
            for each in page.objects:
                self._found[each.type, each.path] = each
                yield each
            self._note(str(step["step"]), len(self._found))
            token = page.next_page_token
            if token is None:
                return

    async def _tell(self) -> Moved:
        state = await self._ask({"step": "status"})
        return Moved(state.phase, list(self._found.values()), state.into or self._into)

    def _end(self, choices: Choices) -> Moved:
        """What could not be moved was left where it is, by choice."""
        objects = [
            structs.replace(each, outcome="left-behind")
            if each.outcome == "obstacle" and choices.leave_behind
            else each
            for each in self._found.values()
        ]
        return Moved("done", objects, self._into)


def _is_ready(each: MovedObject) -> bool:
    return each.type != "namespace" and each.outcome == "ready"
