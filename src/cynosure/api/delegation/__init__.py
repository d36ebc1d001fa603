"""The delegation service over HTTP: the API that Apache Polaris' proposal of it describes, whole.

- `wire.py`      bodies of requests and answers, in the proposal's names
- `routes.py`    the routes: submit, wait, look, list, retry, cancel
- `outcomes.py`  how a task that has ended is answered to whoever waited for it
- `errors.py`    errors in the proposal's shape
- `gate.py`      who may give orders: a certificate, and a token of the catalog

A maintainer must not break: no answer holds a traceback or a credential, and 404 of a task is said only where
it is certain that there is none.
"""
