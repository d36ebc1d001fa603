"""A worker process of `cynosure serve`: `python -m cynosure.server.worker`, started by its parent only."""

from cynosure.server.child import run_child
from cynosure.server.run import run_worker

if __name__ == "__main__":
    run_child("worker", run_worker)
