"""Drives a copy: what is chosen is looked at, then copied, one object after the other.

Nothing of it is kept anywhere but in the files that are there and in the properties of finished copies. So
whoever drives may be killed at any time and begin again.

A maintainer must not break: nothing is begun before all was looked at without an obstacle, unless it is said
that what cannot be copied stays behind; and a row filter or mask is not shed by a copy without a word.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from cynosure.client.appending.stores import open_files
from cynosure.client.copying.ends import End, Opened, Path
from cynosure.client.copying.paths import Paths
from cynosure.client.copying.placing import place_copy
from cynosure.client.copying.reading import Reading
from cynosure.client.copying.state import (
    UUID,
    check_copyable,
    describe,
    describe_copy,
    list_places,
    make_state,
)
from cynosure.client.copying.table_files import TableFiles
from cynosure.client.copying.transfers import Transfers
from cynosure.client.copying.views import find_view_copy, make_view
from cynosure.client.migration import Choices, Moved, MovedObject
from cynosure.client.policies import ApplicablePolicy, PolicyApi, PolicyTarget
from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    CynosureError,
    Forbidden,
    NotAuthenticated,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.common.quantities import format_bytes

_RESTRICTING: Final = "cynosure."
"""What policies begin with that hide something."""
_ENDING: Final = (Unavailable, OutcomeUnknown, NotAuthenticated)
"""What ends the command: nothing is wrong with the table, and the same command goes on later."""
_RESERVED: Final = ("cynosure.", "polaris.")
_NOT_THERE: Final = "the catalog has no table or view of this name, or none that you may know of"
_NO_NAMESPACE: Final = "the catalog has no namespace of this name, or none that you may know of"
_TOLD: Final = ("path", "location", "format", "property")

Note = Callable[[Path, int, int], None]
"""Told which object it is, and how many files and bytes were copied."""


class _Source(NamedTuple):
    """A table that can be copied."""

    reading: Reading
    left: str
    """What stays behind, in words."""


class Copying:
    """What is chosen of one catalog, on its way into another."""

    def __init__(
        self,
        theirs: End,
        ours: End,
        policies: PolicyApi,
        note: Note = lambda _path, _files, _size: None,
    ) -> None:
        """`policies`: those of the catalog that is copied from."""
        self._theirs = theirs
        self._ours = ours
        self._policies = policies
        self._note = note
        self._found: dict[tuple[str, Path], MovedObject] = {}
        self._is_missing = False
        """Whether something was named that is not there."""
        self._known: dict[Path, bool] = {}
        """Namespaces, and whether the other catalog has them."""

    async def survey(self, choices: Choices) -> Moved:
        """What could be copied, and what not. Nothing is changed."""
        await self._look(choices)
        return self._tell("none")

    async def copy(self, choices: Choices) -> Moved:
        """Copy it. It is done if the phase says so; else obstacles say why it was not."""
        surveyed = await self.survey(choices)
        if self._is_missing or (surveyed.obstacles and not choices.leave_behind):
            return surveyed
        for kind, path in [key for key, each in self._found.items() if each.outcome == "ready"]:
            done = await self._try(kind, path, choices)
            if done.outcome == "obstacle" and choices.leave_behind:
                done = structs.replace(done, outcome="left-behind")
            self._found[kind, path] = done
        if choices.leave_behind:
            for key, each in self._found.items():
                if each.outcome == "obstacle":
                    self._found[key] = structs.replace(each, outcome="left-behind")
        return self._tell("copying" if self._tell("").obstacles else "done")

    def _tell(self, phase: str) -> Moved:
        return Moved(phase, list(self._found.values()), self._ours.name)

    async def _try(self, kind: str, path: Path, choices: Choices) -> MovedObject:
        try:
            if kind == "namespace":
                return await self._copy_namespace(path)
            if kind == "view":
                return await self._copy_view(path)
            return await self._copy_table(path, choices)
        except _ENDING:
            raise
        except CynosureError as error:
            return _obstacle(kind, path, explain(error))

    # What there is, and what is in the way.

    async def _look(self, choices: Choices) -> None:
        for end in (self._theirs, self._ours):
            await end.require()
        whole = await self._list_whole(choices)
        for namespace in whole:
            await self._look_at_namespace(namespace)
            for each in await self._theirs.list_tables(namespace):
                await self._look_at("table", (*namespace, each.name), choices)
            for each in await self._theirs.list_views(namespace):
                await self._look_at("view", (*namespace, each.name), choices)
        for path in choices.tables:
            if not {("table", path), ("view", path)} & self._found.keys():
                for depth in range(1, len(path)):
                    await self._look_at_namespace(path[:depth])
                await self._look_at("", path, choices)

    async def _list_whole(self, choices: Choices) -> list[Path]:
        """All namespaces of which everything is chosen, each after the one it is in."""
        if not choices.namespaces:
            return [] if choices.tables else await self._theirs.walk_namespaces()
        found: dict[Path, None] = {}
        for namespace in choices.namespaces:
            try:
                below = await self._theirs.walk_namespaces(namespace)
            except NotFound:
                self._is_missing = True
                self._keep(_obstacle("namespace", namespace, _NO_NAMESPACE))
                continue
            for depth in range(1, len(namespace)):
                await self._look_at_namespace(namespace[:depth])
            found |= dict.fromkeys([namespace, *below])
        return list(found)

    async def _look_at_namespace(self, namespace: Path) -> None:
        if ("namespace", namespace) in self._found:
            return
        try:
            is_there = await self._ours.find_namespace(namespace) is not None
        except Forbidden:
            # Whoever may create tables in it need not be allowed to look at it.
            is_there = True
        self._known[namespace] = is_there
        self._keep(MovedObject("namespace", namespace, "there" if is_there else "ready"))

    async def _look_at(self, kind: str, path: Path, choices: Choices) -> None:
        """`kind` is empty for what was named without saying what it is."""
        try:
            found = await self._examine(kind, path, choices)
        except _ENDING:
            raise
        except CynosureError as error:
            found = _obstacle(kind or "table", path, explain(error))
        if found is None and not kind:
            self._is_missing = True
            found = _obstacle("table", path, _NOT_THERE)
        # What was listed a moment ago and is gone by now needs no line.
        if found is not None:
            self._keep(found)
        self._note(path, 0, 0)

    async def _examine(self, kind: str, path: Path, choices: Choices) -> MovedObject | None:
        if kind != "view":
            try:
                opened = await self._theirs.open_table(path)
            except NotFound:
                pass
            else:
                return await self._examine_table(path, opened, choices)
        found = None if kind == "table" else await self._theirs.find_view(path)
        return None if found is None else await self._examine_view(path, found)

    async def _examine_table(self, path: Path, opened: Opened, choices: Choices) -> MovedObject:
        there = await self._find_copy(path, opened.metadata)
        if there is not None:
            return there
        source = await self._check(path, opened, choices)
        if self._known.get(path[:-1]):
            await self._ours.propose(path)
        what = ". ".join(filter(None, (describe(opened.metadata), source.left)))
        return MovedObject("table", path, "ready", what)

    async def _check(self, path: Path, opened: Opened, choices: Choices) -> _Source:
        """Refuse what cannot be copied."""
        metadata = opened.metadata
        if opened.is_restricted:
            # Also where files could be read: on this machine no credentials are in between.
            raise Forbidden(
                "A row filter or mask of the table counts for you",
                fix="Have it copied by somebody who may see all of it.",
            )
        check_copyable(metadata)
        reading = Reading(list_places(metadata), opened.access)
        reading.open(f"{metadata['location'].rstrip('/')}/metadata")
        return _Source(reading, await self._check_policies(path, choices))

    async def _check_policies(self, path: Path, choices: Choices) -> str:
        """Which policies stay behind, in words. Refused where one hides something, unless that is wanted."""
        try:
            found = await self._policies.list_applicable(PolicyTarget("table-like", path))
        except (Forbidden, NotFound):
            if choices.leave_policies:
                return ""
            raise Forbidden(
                "You may not see whether row filters or masks count for the table",
                fix="Have the right to list its policies granted, or say --leave-policies.",
            ) from None
        hiding = [each for each in found if _is_hiding(each)]
        if hiding and not choices.leave_policies:
            raise BadInput(
                f"Row filters or masks that count for it would not count for the copy: {_names(hiding)}",
                field="policies",
                fix="Attach such policies in the other catalog, and say --leave-policies.",
            )
        return f"policies that stay behind: {_names(found)}" if found else ""

    async def _find_copy(self, path: Path, metadata: dict[str, Any]) -> MovedObject | None:
        """The copy that the other catalog has. Refused when it has another table of the name."""
        try:
            has = await self._ours.find_table(path)
        except Forbidden:
            return None
        if has is None:
            return None
        uuid = metadata.get("table-uuid")
        if uuid and has.get("properties", {}).get(UUID) == uuid:
            return MovedObject("table", path, "there", describe_copy(has["properties"], metadata))
        raise BadInput(
            f"{self._ours.name} has another table of this name: {has['table-uuid']}",
            field="into",
            fix="Rename one of them.",
        )

    async def _examine_view(self, path: Path, found: dict[str, Any]) -> MovedObject:
        has = await self._ours.find_view(path)
        if has is not None:
            return find_view_copy(path, found, has, self._ours.name)
        if await self._ours.find_table(path) is not None:
            raise BadInput(
                f"{self._ours.name} has a table of this name", field="into", fix="Rename one of them."
            )
        return MovedObject("view", path, "ready")

    def _keep(self, each: MovedObject) -> None:
        self._found[each.type, each.path] = each

    # One object after the other.

    async def _copy_namespace(self, namespace: Path) -> MovedObject:
        left = ""
        try:
            given = await self._theirs.find_namespace(namespace) or {}
        except Forbidden:
            given, left = {}, "without its properties, which you may not read"
        kept = {
            name: value
            for name, value in given.items()
            # A place of the other catalog's is none for this one.
            if name != "location" and not name.lower().startswith(_RESERVED)
        }
        try:
            await self._ours.create_namespace(namespace, kept)
        except AlreadyExists:
            return MovedObject("namespace", namespace, "there")
        return MovedObject("namespace", namespace, "copied", left)

    async def _copy_view(self, path: Path) -> MovedObject:
        found = await self._theirs.find_view(path)
        if found is None:
            return _obstacle("view", path, _NOT_THERE)
        await self._ours.create_view(path, make_view(found))
        return MovedObject("view", path, "copied")

    async def _copy_table(self, path: Path, choices: Choices) -> MovedObject:
        # As it is now: whoever writes to it goes on, and what comes later is not in the copy.
        opened = await self._theirs.open_table(path)
        metadata = opened.metadata
        there = await self._find_copy(path, metadata)
        if there is not None:
            return there
        source = await self._check(path, opened, choices)
        staged = await place_copy(self._ours, path, metadata["table-uuid"])
        location: str = staged.metadata["location"].rstrip("/")
        paths = Paths(metadata["location"], location)
        transfers = Transfers(
            source.reading,
            open_files(location, staged.access),
            lambda _size: self._note_file(path, transfers),
        )
        await TableFiles(transfers, paths).copy(metadata)
        table_uuid: str = staged.metadata["table-uuid"]
        state = make_state(metadata, paths, table_uuid=table_uuid, location=location)
        file = f"{location}/metadata/00000-{table_uuid}.metadata.json"
        # Order: all that the metadata name is there, then they are, then the table is.
        await transfers.save(file, msgspec.json.encode(state))
        try:
            await self._ours.register(path, file)
        except AlreadyExists:
            # Another copy of the same table may have been faster.
            there = await self._find_copy(path, metadata)
            if there is None:
                raise
            return there
        what = f"{transfers.copied} files, {format_bytes(transfers.copied_bytes)}"
        if transfers.found:
            what += f"; {transfers.found} were there already"
        return MovedObject("table", path, "copied", ". ".join(filter(None, (what, source.left))))

    def _note_file(self, path: Path, transfers: Transfers) -> None:
        self._note(path, transfers.copied, transfers.copied_bytes)


def explain(error: CynosureError) -> str:
    """Why something cannot be copied, in one line."""
    varying = ", ".join(str(error.details[name]) for name in _TOLD if name in error.details)
    text = f"{error.message}: {varying}" if varying else error.message
    return f"{text}. {error.fix}" if error.fix else text


def _obstacle(kind: str, path: Path, reason: str) -> MovedObject:
    return MovedObject(kind, path, "obstacle", reason)


def _is_hiding(policy: ApplicablePolicy) -> bool:
    if not policy.policy_type.startswith(_RESTRICTING):
        return False
    try:
        content: dict[str, Any] = msgspec.json.decode(policy.content or "{}", type=dict)
    except msgspec.DecodeError:
        return True
    return content.get("enable") is not False


def _names(policies: Iterable[ApplicablePolicy]) -> str:
    return ", ".join(dict.fromkeys(".".join((*each.namespace, each.name)) for each in policies))
