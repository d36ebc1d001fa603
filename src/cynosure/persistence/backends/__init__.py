"""One module or package per database, each an implementation of `persistence.spi.Backend`.

They do not know each other: what several need lies one level up (`row_rules.py`, `backend_options.py`).
A maintainer must not break: a driver is imported only by its own backend, so that an extra that is not
installed costs nothing.
"""
