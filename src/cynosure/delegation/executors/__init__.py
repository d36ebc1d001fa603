"""Where a catalog orders long work (`catalog/task_executor.py`): in its own process, or from a service.

- `open.py`       which one the settings mean
- `local.py`      purges in this process: the same service core and worker, on the catalog's own store
- `delegated.py`  everything to a delegation service, over HTTP

Must not break: an order that may have arrived is never said not to have.
"""
