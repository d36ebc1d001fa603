"""Where a step of a migration happens, what it tells, and whom it is for."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.directory import Directory
from cynosure.catalog.listed import MAX_LOCATIONS, list_held
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.update_catalog import with_locations
from cynosure.common.errors import Conflict
from cynosure.federation.handover import Moving, Phase, find_moving
from cynosure.federation.reconciling.drift import Kind
from cynosure.federation.remote import RemoteCatalog
from cynosure.persistence.commit import State
from cynosure.persistence.spi import CatalogId
from cynosure.storage.location import Location

Outcome = Literal[
    "ready", "there", "taken", "gone", "given", "released", "kept", "left-behind", "put-back", "obstacle"
]
"""It can be moved; it is where it is to go already; it is here and set aside at the remote; the remote has it
no more; the other catalog has it; it was dropped at the remote; it stays there under its other name; it stays
there, and is given up here or stays as it was; it is as it was; it cannot be moved, for the reason that is
told."""


class Line(Struct, frozen=True):
    """What became of one object."""

    kind: Kind
    path: tuple[str, ...]
    outcome: Outcome
    reason: str = ""


class Told(Struct, frozen=True, kw_only=True):
    """The answer of a step."""

    phase: Phase | Literal["none", "done"]
    lines: tuple[Line, ...] = ()
    next_token: str | None = None
    into: str | None = None
    """The catalog that gets the tables; `None`: the catalog itself becomes ours."""
    room: int | None = None
    """How many locations that one can have besides those that it has, or gets by other migrations."""


class Into(NamedTuple):
    """The catalog that gets the tables of another one."""

    directory: Directory
    catalog: OpenCatalog
    reader: OpenCatalog
    """The same, as if it could use all places of the giver: what is to come is tried out on it."""
    leaves_policies: bool
    coming: Mapping[CatalogId, tuple[Location, ...]]
    """Places that it gets by other migrations, by the catalog that gives them."""

    @property
    def room(self) -> int:
        """How many locations it can have besides those that it has, or gets from others."""
        return MAX_LOCATIONS - len(list_held(with_locations(self.catalog.entity, self.all_coming)))

    @property
    def all_coming(self) -> list[Location]:
        """Those places, whoever gives them."""
        return [place for places in self.coming.values() for place in places]


class Scene(NamedTuple):
    """Where a step happens."""

    catalog: OpenCatalog
    caller: Caller
    remote: RemoteCatalog
    into: Into | None = None


async def authorize(catalog: OpenCatalog, caller: Caller) -> State:
    """The state of the catalog, to who may move it."""
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.MIGRATE_CATALOG, catalog.target())
    return state


async def require_moving(state: State, catalog: OpenCatalog, *phases: Phase) -> Moving:
    """The migration under way; `Conflict` when there is none, or it is further than that."""
    moving = await find_moving(state)
    if moving is None:
        raise Conflict(
            "The catalog is not being moved", fix="Begin the migration first.", catalog=catalog.entity.name
        )
    if moving.phase == "ending" and "ending" not in phases:
        raise Conflict(
            "The migration is being given up",
            fix="Run 'cynosure migrate' with --cancel to its end first.",
            catalog=catalog.entity.name,
        )
    if phases and moving.phase not in phases:
        raise Conflict(
            "The migration is not at this step",
            fix="Go on with it: run 'cynosure migrate' again.",
            catalog=catalog.entity.name,
            phase=moving.phase,
        )
    return moving


def require_into(scene: Scene) -> Into:
    """The catalog that gets the tables; `Conflict` when the catalog itself becomes ours."""
    if scene.into is None:
        raise Conflict(
            "The tables of this catalog stay in it",
            fix="Go on with it: run 'cynosure migrate' again.",
            catalog=scene.catalog.entity.name,
        )
    return scene.into
