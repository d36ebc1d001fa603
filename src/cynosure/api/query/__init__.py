"""Governed SQL over HTTP: statements are sent, waited for, fetched page by page, ended.

- `wire.py`    bodies of requests and answers
- `values.py`  rows as JSON, without loss
- `pages.py`   a page of results as JSON or as a stream of Arrow
- `routes.py`  the routes, over the coordinator's `Statements`
- `gate.py`    who asks: the catalog says so, for whom the gateway then asks it
- `errors.py`  errors with their place in the statement

A maintainer must not break: nothing here looks into tables. What a user gets is what the coordinator gives
for their session, and a statement of somebody else is answered as one that never was.
"""
