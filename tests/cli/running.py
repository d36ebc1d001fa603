"""How a call of the command line ended."""

from collections.abc import Callable
from typing import NamedTuple


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Cynosure = Callable[..., Ended]
