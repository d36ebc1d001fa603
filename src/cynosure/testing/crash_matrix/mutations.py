"""One of each kind of request that changes something.

Each is prepared afresh, under names of its own, so that any number of trials share one store.
"""

from typing import Final

from cynosure.testing.crash_matrix.content import CONTENT
from cynosure.testing.crash_matrix.management import MANAGEMENT_REQUESTS
from cynosure.testing.crash_matrix.world import Prepare

MUTATIONS: Final[dict[str, Prepare]] = {
    each.__name__[1:].replace("_", " "): each for each in (*CONTENT, *MANAGEMENT_REQUESTS)
}
"""By what they do."""
