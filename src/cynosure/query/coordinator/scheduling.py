"""Largest first, each to whoever has the least to do: the weighted scheduler of the design document.

A maintainer must not break: what is already at work counts; and ties go to the first, so that the same plan
gives the same fragments.
"""

import heapq
from collections.abc import Sequence


def assign_largest_first(costs: Sequence[int], loads: Sequence[int]) -> list[int]:
    """For each cost, the place of the bin that gets it. `loads` is what the bins have to do already."""
    if not loads:
        raise ValueError("there is no bin")
    heap = [(load, place) for place, load in enumerate(loads)]
    heapq.heapify(heap)
    found = [0] * len(costs)
    # A stable sort: equal costs stay in the order of the plan.
    for item in sorted(range(len(costs)), key=lambda at: -costs[at]):
        load, place = heapq.heappop(heap)
        found[item] = place
        heapq.heappush(heap, (load + max(1, costs[item]), place))
    return found
