"""What a suite's figures promise, and whether a run kept it.

A suite may have a function `promises(result) -> list[Promise]`; the runner prints what it says.

A maintainer must not break: a promise that the run did not measure is not reported as kept.
"""

import operator
import statistics
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from benchmarks.measure import Figures
from benchmarks.results_file import Result
from benchmarks.tables import readable

_COMPARE = {"≤": operator.le, "≥": operator.ge}


class Promise(Struct, frozen=True):
    """One figure with its bound."""

    figure: str
    relation: Literal["≤", "≥"]
    bound: float
    measured: float

    @property
    def is_kept(self) -> bool:
        """Whether the measured value is within the bound."""
        return bool(_COMPARE[self.relation](self.measured, self.bound))

    def __str__(self) -> str:
        verdict = "met" if self.is_kept else "MISSED"
        return f"{verdict}: {self.figure}: {readable(self.measured)} ({self.relation} {readable(self.bound)})"


def rate(figures: Figures) -> float:
    """Operations per second."""
    return figures.operations / figures.wall_s


def cpu_us(figures: Figures) -> float:
    """CPU of all measured processes per operation."""
    return (figures.cpu_s + figures.watched_cpu_s) * 1e6 / figures.operations


def median(result: Result, candidate: str, of: Callable[[Figures], float]) -> float:
    """Median over the rounds of a candidate."""
    return statistics.median(of(figures) for figures in result.candidates[candidate])


def ratio(result: Result, candidate: str, to: str, of: Callable[[Figures], float]) -> float:
    """Median of the ratios of neighbouring rounds: what the machine did meanwhile cancels out."""
    pairs = zip(result.candidates[candidate], result.candidates[to], strict=True)
    return statistics.median(of(one) / of(other) for one, other in pairs)


def has(result: Result, *candidates: str) -> bool:
    """Whether all these candidates ran."""
    return all(candidate in result.candidates for candidate in candidates)
