"""What this process holds open: threads, sockets and files, as things that can be told apart.

Counting them does not do: in a process that has run other tests, their pools and connections end whenever
they like, and a count falls meanwhile. What is new is asked by a difference of sets.
"""

import asyncio
import os
import threading
import time
from pathlib import Path

_PATIENCE_S = 10.0


async def find_new(before: set[str]) -> set[str]:
    """What is held beyond that for good: looked at again for a while, as what others use comes and goes."""
    give_up_s = time.monotonic() + _PATIENCE_S
    while (new := list_held() - before) and time.monotonic() < give_up_s:  # noqa: ASYNC110 - nobody says it
        await asyncio.sleep(0.05)
    return new


def list_held() -> set[str]:
    """Every live thread and every open descriptor."""
    return {f"thread {each.name} {each.ident}" for each in threading.enumerate()} | list_descriptors()


def list_descriptors() -> set[str]:
    """Every open descriptor and what it leads to, sockets by their number in the kernel."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{link.name} -> {os.readlink(link)}")
        except FileNotFoundError:  # the descriptor by which the directory is read, or one that was closed
            continue
    return found
