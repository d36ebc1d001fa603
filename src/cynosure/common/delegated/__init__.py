"""The words that a catalog and its delegation service share: kinds of tasks, states, payloads, settings.

- `vocabulary.py`  kinds and states of tasks, in every spelling that is understood
- `payload.py`     a task as it is ordered, on the wire and as it is kept
- `record.py`      a task as it is told about
- `settings.py`    settings of both sides

A maintainer must not break: what is stored or sent is always spelled in one way, whatever was read; and
credentials that come with an order are read over: never kept, logged or used.
"""
