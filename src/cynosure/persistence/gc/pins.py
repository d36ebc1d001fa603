"""Pins keep a commit's state alive for a long reader (an export, a long scan) beyond what history keeps.

A pin is a leased, updateable object: whoever holds it renews it, and a crashed holder's pin runs out.

Must not break: a pin counts only if its commit is retained when the pin is there. A collection that began
before the pin was set keeps that commit anyway; one that begins later finds the pin.
"""

from datetime import timedelta

from msgspec.structs import replace

from cynosure.common.clock import Clock
from cynosure.common.errors import Expired, LeaseLost
from cynosure.persistence.history.retained import load_retained
from cynosure.persistence.ids import IdSource
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store, Versioned


class Pin(Stored, frozen=True):
    """A claim on one commit's state."""

    commit: ObjId
    owner: str
    until_us: int


PIN = struct_type("pin", Pin, is_mutable=True)


async def set_pin(
    store: Store,
    *,
    head: ObjId,
    commit: ObjId,
    owner: str,
    life_s: float,
    ids: IdSource,
    clock: Clock,
    retention: timedelta,
) -> Versioned[Pin]:
    """Pin a commit of the retained chain below `head`."""
    retained = await load_retained(store, head, commit, clock=clock, retention=retention)
    pin = Pin(commit=commit, owner=owner, until_us=clock.now_us() + int(life_s * 1_000_000))
    placed = await store.insert(PIN, ids.next(), pin)
    if placed is None:
        raise LeaseLost("Another object has this pin's id", fix="Try again.", commit=commit)
    try:
        # Order: again, now that the pin is there. The insert may have taken long, or the process was stopped.
        retained.ensure(clock)
    except Expired:
        await drop_pin(store, placed)
        raise
    return placed


async def renew_pin(store: Store, pin: Versioned[Pin], *, life_s: float, clock: Clock) -> Versioned[Pin]:
    """Extend a pin that has not run out. `LeaseLost` when it has."""
    now_us = clock.now_us()
    renewed = None
    if pin.value.until_us > now_us:
        value = replace(pin.value, until_us=now_us + int(life_s * 1_000_000))
        renewed = await store.swap(PIN, pin, value)
    if renewed is None:
        raise LeaseLost("The pin ran out", fix="Start again on a current commit.", commit=pin.value.commit)
    return renewed


async def drop_pin(store: Store, pin: Versioned[Pin]) -> None:
    """Give a pin up. One that ran out and was removed meanwhile is gone already."""
    await store.delete_if(PIN, pin)
