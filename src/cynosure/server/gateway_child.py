"""The gateway of `cynosure up`, which alone starts it: `-m cynosure.server.gateway_child`."""

from cynosure.server.child import run_child
from cynosure.server.gateway import GATEWAY
from cynosure.server.service_process import run_service_child

if __name__ == "__main__":
    run_child("gateway", lambda: run_service_child(GATEWAY))
