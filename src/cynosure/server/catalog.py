"""The catalog service of `cynosure up`: `python -m cynosure.server.catalog`, started by it only."""

from cynosure.server.child import run_child
from cynosure.server.run import run_catalog_child

if __name__ == "__main__":
    run_child("catalog", run_catalog_child)
