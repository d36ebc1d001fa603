"""What something costs, whatever else this machine and this process have to do."""

import gc
import time
from collections.abc import Callable


def cost_of(work: Callable[[], object]) -> float:
    """Seconds of this thread.

    Without the garbage collector: what it looks at once in a while is all that other tests have left.
    """
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()
