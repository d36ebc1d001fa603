"""The catalog as the statements of one user see it: over HTTP, on behalf of that user.

- `port.py`      what the coordinator asks
- `http.py`      sessions: one user's token, and all that is asked with it
- `behalf.py`    tokens on behalf of users, remembered for a minute at most; `asking.py` requests with them
- `opening.py`   an answer of loadTable as a table at one snapshot; `views.py` one of loadView
- `planning.py`  pages of a plan as files, deletes and credentials
- `wire.py`      the answers as they come

A maintainer must not break: every answer is of the user's rights now; nothing of one user's answers is shown
to another; and what cannot be seen and what is not there are one answer.
"""
