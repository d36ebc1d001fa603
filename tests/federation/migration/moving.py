"""A migration of the catalog of `Far`, driven as the command line does it, without a server in between."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from cynosure.auth.caller import Caller
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.table_changes import TableChange
from cynosure.client.migration import Migration, MigrationState, MovedObject
from cynosure.federation.handover import Chosen
from cynosure.federation.migration.migrate import Step, migrate
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import updates
from tests.federation.seen_world import OTHER_UUID, Far, T, answer_of

NAMES = {
    "step": "name",
    "type": "kind",
    "pageToken": "token",
    "keepRemote": "keeps_remote",
    "leaveBehind": "leaves_behind",
    "leavePolicies": "leaves_policies",
    "writersStopped": "is_quiet",
}
CHOSEN = ("namespaces", "tables")


U = Identifier(("ns", "deep"), "items")


class Killed(BaseException):
    """Where a test ends the process: nothing that handles errors gets hold of it."""


async def ask(far: Far, step: Mapping[str, Any], caller: Caller = ROOT) -> MigrationState:
    """One request of a process that knows nothing of the one before."""
    catalog = await far.directory.open(DEFAULT_REALM, far.catalog.entity.name)
    given = {NAMES.get(name, name): value for name, value in step.items() if name not in CHOSEN}
    chosen = Chosen(*(tuple(map(tuple, step.get(name, ()))) for name in CHOSEN))
    wanted = Step(**given, chosen=chosen)
    told = await migrate(far.directory, far.federation.clients, catalog, caller, wanted)
    objects = tuple(MovedObject(each.kind, each.path, each.outcome, each.reason) for each in told.lines)
    return MigrationState(told.phase, objects, told.next_token, told.into, told.room)


Between = Callable[[Mapping[str, Any]], Awaitable[None] | None]


def migration(far: Far, between: Between = lambda _: None) -> Migration:
    """A migration; `between` is called before each request."""

    async def send(step: Mapping[str, Any]) -> MigrationState:
        if (pending := between(step)) is not None:
            await pending
        return await ask(far, msgspec.to_builtins(step))

    return Migration(send)


def fill(far: Far) -> None:
    far.put()
    far.put(U, "items", uuid=OTHER_UUID)


async def open_again(far: Far) -> None:
    far.catalog = await far.directory.open(DEFAULT_REALM, "far")


def outcomes(objects: list[Any]) -> dict[str, str]:
    return {".".join(each.path): each.outcome for each in objects}


async def commit_here(far: Far, table: Identifier = T) -> None:
    """Somebody writes the table in our catalog."""
    change = TableChange(table, (), tuple(updates({"action": "set-properties", "updates": {"ours": "1"}})))
    await commit_table(far.catalog, ROOT, change)


async def load_version(far: Far, table: Identifier = T) -> str:
    answer = await load_table(far.catalog, ROOT, table)
    return str(answer_of(answer)["properties"]["version"])
