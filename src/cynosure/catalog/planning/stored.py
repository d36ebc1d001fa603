"""Plans that outlive their first answer, and the texts by which clients name them and their parts.

A plan is stored once and never changed. Nothing refers to it, so garbage collection takes it after its grace,
and ids and tasks live shorter than that. A plan that is cancelled gets a mark under the same id, which every
server looks for.

A maintainer must not break: ids and tasks are bound to the table itself, to the principal and to the service
that acts for it. A service is told more than the principal whose work it does.
"""

from typing import Final

import msgspec

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchPlan, NoSuchPlanTask
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.parts import Part
from cynosure.catalog.planning.request import ScanRequest
from cynosure.common.errors import BadPageToken, Expired
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject

NOT_STORED: Final = ObjId(0)
"""The id of plans that were answered completely at once."""


class ScanPlan(Stored, frozen=True, omit_defaults=True):
    """A scan of one version of a table, for one principal."""

    id: ObjId
    table_id: ObjId
    """Stable id: a rename keeps the plan."""
    state_id: ObjId
    """The version."""
    request: bytes
    """`ScanRequest` as JSON."""
    principal_id: ObjId
    created_us: int
    actor_id: ObjId = ObjId(0)
    """The service that acts for the principal."""


class PlanEnd(Stored, frozen=True):
    """Says that the plan of the same id is for nobody any more."""

    ended_us: int


SCAN_PLAN = struct_type("scan-plan", ScanPlan)
PLAN_END = struct_type("scan-plan-end", PlanEnd)

_parts: Final = msgspec.msgpack.Decoder(tuple[int, Part])
_requests: Final = msgspec.json.Decoder(ScanRequest)


class PlanNames:
    """Ids and tasks of the plans that one caller has of one table."""

    def __init__(self, catalog: OpenCatalog, caller: Caller, table_id: ObjId) -> None:
        actor = 0 if caller.identity is None else caller.identity.actor_id
        who = (catalog.realm, catalog.entity.id, table_id, caller.principal_id, actor)
        self._scope = "\x1f".join(map(str, who))
        self._tokens = catalog.shared.persistence.page_tokens

    def seal_id(self, plan_id: ObjId) -> str:
        """The text of a plan's id."""
        return self._tokens.seal(f"scan-plan\x1f{self._scope}", plan_id.to_bytes(8, "big"))

    def open_id(self, text: str) -> ObjId:
        """A plan's id; `NoSuchPlan` for anything that is none, any more or for this caller."""
        try:
            payload = self._tokens.open(f"scan-plan\x1f{self._scope}", text)
        except (BadPageToken, Expired) as error:
            raise NoSuchPlan(text) from error
        return ObjId(int.from_bytes(payload, "big"))

    def seal_part(self, plan_id: ObjId, part: Part) -> str:
        """A plan task."""
        payload = msgspec.msgpack.encode((plan_id, part))
        return self._tokens.seal(f"scan-part\x1f{self._scope}", payload)

    def open_part(self, text: str) -> tuple[ObjId, Part]:
        """What a plan task stands for; `NoSuchPlanTask` for anything that is none, any more or for them."""
        try:
            payload = self._tokens.open(f"scan-part\x1f{self._scope}", text)
            plan_id, part = _parts.decode(payload)
        except (BadPageToken, Expired, msgspec.DecodeError) as error:
            raise NoSuchPlanTask(text) from error
        return ObjId(plan_id), part


async def store_plan(
    catalog: OpenCatalog,
    caller: Caller,
    plan_id: ObjId,
    *,
    table_id: ObjId,
    state_id: ObjId,
    request: ScanRequest,
) -> None:
    """Keep a plan for as long as its id lives."""
    plan = ScanPlan(
        id=plan_id,
        table_id=table_id,
        state_id=state_id,
        request=msgspec.json.encode(request),
        principal_id=caller.principal_id,
        created_us=catalog.shared.persistence.clock.now_us(),
        actor_id=ObjId(0) if caller.identity is None else caller.identity.actor_id,
    )
    await catalog.store.write([NewObject(SCAN_PLAN, plan_id, plan)])


async def find_plan(catalog: OpenCatalog, plan_id: ObjId) -> ScanPlan | None:
    """A plan by its id; None for one that is gone."""
    if plan_id == NOT_STORED:
        return None
    return await catalog.store.find(SCAN_PLAN, plan_id)


async def is_ended(catalog: OpenCatalog, plan_id: ObjId) -> bool:
    """Whether the plan was cancelled, on whichever server."""
    # That there is no mark is never remembered, so this asks the database.
    return await catalog.store.find(PLAN_END, plan_id) is not None


async def end_plan(catalog: OpenCatalog, plan_id: ObjId) -> None:
    """Make a plan unknown to every server."""
    mark = PlanEnd(ended_us=catalog.shared.persistence.clock.now_us())
    await catalog.store.write([NewObject(PLAN_END, plan_id, mark)])


def read_request(plan: ScanPlan) -> ScanRequest:
    """What a stored plan was asked for."""
    return _requests.decode(plan.request)
