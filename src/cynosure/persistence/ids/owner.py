"""Which process holds a lease, in words an operator can act on.

Informative only. A maintainer must not break: no decision compares owners; a lease is recognised by its
random `holder`, because a restarted process may have the same host and process id.
"""

import os
import socket
from random import Random

from msgspec import Struct

from cynosure.common.clock import Clock


class Owner(Struct, frozen=True):
    """One process."""

    host: str
    pid: int
    started_us: int
    """When this process began to use the store, by its own clock."""

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


def this_process(clock: Clock) -> Owner:
    """The owner that this process writes into its leases. Call it once, at the start."""
    return Owner(host=socket.gethostname(), pid=os.getpid(), started_us=clock.now_us())


def new_holder(rng: Random) -> str:
    """A name for one grant that no other grant has."""
    return f"{rng.getrandbits(96):024x}"
