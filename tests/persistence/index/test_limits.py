import pytest

from cynosure.common.errors import Misconfigured
from cynosure.persistence.index import IndexLimits


@pytest.mark.parametrize(
    "setting",
    [
        {"leaf_entries": 3},
        {"inner_entries": 1},
        {"leaf_entries": 100_000},
        {"buffer_bytes": 0},
        {"spill_leaves": 0},
    ],
)
def test_limits_that_cannot_work_are_refused(setting: dict[str, int]) -> None:
    with pytest.raises(Misconfigured, match=next(iter(setting))):
        IndexLimits(**setting)
