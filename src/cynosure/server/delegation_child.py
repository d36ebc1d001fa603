"""The delegation service of `cynosure up`, which alone starts it: `-m cynosure.server.delegation_child`."""

from cynosure.server.child import run_child
from cynosure.server.delegation import DELEGATION
from cynosure.server.service_process import run_service_child

if __name__ == "__main__":
    run_child("delegation", lambda: run_service_child(DELEGATION))
