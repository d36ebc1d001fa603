"""Production code that is broken on purpose, and the search for a simulated history that shows it."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest

from cynosure.testing.sim import Parts, run_seed
from cynosure.testing.sim.weather import Weather
from cynosure.testing.sim.world import seeded

_MOST_SEEDS = 150


class Mutant(NamedTuple):
    """A broken variant, the part it takes the place of, and the rules it may break."""

    variant: type
    part: str
    bend: Callable[[Weather], Weather]
    rules: tuple[str, ...]
    first_seed: int = 0
    """Where to begin to look: what takes rare luck to show has shown there before."""


def check_noticed(mutant: Mutant, draw: Callable[[Random], Weather]) -> None:
    """A history breaks one of the mutant's rules, and none with the code as it is."""
    for seed in range(mutant.first_seed, mutant.first_seed + _MOST_SEEDS):
        weather = mutant.bend(draw(seeded(seed, "weather")))
        run = run_seed(seed, parts=Parts(**{mutant.part: mutant.variant}), weather=weather)
        if run.broken is not None:
            break
    else:
        pytest.fail(f"{_MOST_SEEDS} runs broke no rule")

    assert run.broken.rule in mutant.rules
    assert run_seed(seed, weather=weather).broken is None
