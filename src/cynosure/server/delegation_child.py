"""The delegation service of `cynosure up`, which alone starts it: `-m cynosure.server.delegation_child`."""

from cynosure.server.child import run_child
from cynosure.server.delegation import run_delegation_child

if __name__ == "__main__":
    run_child("delegation", run_delegation_child)
