"""Accept an order.

Must not break: the same order is one task, whoever sends it and however often; nothing is kept of an order
that is refused.
"""

from typing import Final

from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.errors import BadInput, Conflict, Forbidden
from cynosure.common.schedules import parse_schedule
from cynosure.common.telemetry.logs import Log
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.details import to_details
from cynosure.delegation.service.settling import repeat
from cynosure.delegation.transitions import submitted

_SCHEDULE: Final = "common_payload.schedule"
_log = Log(__name__)


async def submit(context: TaskContext, order: TaskOrder) -> TaskDetails:
    """The task of this order, which is kept from now on.

    `Forbidden` for another realm, `BadInput` for what cannot be done, `Conflict` for another order under the
    same correlation id.
    """
    _check(context, order)
    now_us = context.clock.now_us()
    first_run_us = 0
    if order.schedule is not None:
        first_run_us = parse_schedule(order.schedule, field=_SCHEDULE).first_us(now_us)
    new = submitted(order, now_us=now_us, first_run_us=first_run_us)
    kept = await repeat(context.clock, lambda: context.store.insert(new))
    if kept.fingerprint != new.fingerprint:
        raise Conflict(
            "The correlation id stands for another order",
            field="common_payload.polaris_correlation_id",
            fix="Repeat a correlation id only with the very same order; use a new one for every new order.",
            correlation_id=order.correlation_id,
            task=kept.task_id,
        )
    if kept.version == 1:
        _log.event("task.submitted", task=kept.task_id, type=order.task_type, table=order.table)
        context.changes.tell_work()
    return to_details(kept)


def _check(context: TaskContext, order: TaskOrder) -> None:
    if order.realm != context.realm:
        raise Forbidden(
            "Tasks of this realm are not done here",
            field="common_payload.realm_identifier",
            fix=f"Send it to the service of the realm; this one works for {context.realm}.",
            realm=order.realm,
        )
    job = context.jobs.get(order.task_type)
    if job is None:
        raise BadInput(
            "Tasks of this kind are not done here",
            field="common_payload.operation_type",
            fix=f"Order one of {', '.join(context.jobs)}, or send it to a delegation service.",
            value=order.task_type,
        )
    job.check(order)
