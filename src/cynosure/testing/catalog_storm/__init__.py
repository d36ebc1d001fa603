"""A storm of commits through the REST protocol against servers that are killed, judged afterwards.

    python -m cynosure.testing.catalog_storm serve --data DIR --port N   rises again when killed

- `phoenix.py`   the server: forks of one process that has imported everything, so a new life costs little
- `clients.py`   what is sent: snapshots and counters, each written down with what was answered
- `places.py`    another storm: tables that want the same places, policies, and a reader who is restricted
- `judge.py`     the tables, as the server tells them and as their files say, against what was written down

A maintainer must not break: an answer counts as an acknowledgement only when all of it has arrived.
"""
