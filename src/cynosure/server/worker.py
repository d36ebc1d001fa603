"""A worker process of `cynosure serve`: `python -m cynosure.server.worker`, started by its parent only."""

import sys

from cynosure.common.errors import CynosureError
from cynosure.server.run import run_worker

if __name__ == "__main__":
    try:
        run_worker()
    except CynosureError as error:
        print(f"A worker could not serve: {error}", file=sys.stderr)
        raise SystemExit(1) from None
