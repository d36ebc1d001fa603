"""A whole installation from a file: principals, roles, catalogs, namespaces, policies, grants.

- `document.py`   what the file may say; the names are those of Apache Polaris' command line
- `present.py`    what the server has of it
- `plan.py`       the steps between the two
- `policies.py`   all of that for policies
- `apply.py`      doing them
- `export.py`     the other way round: a file from a server
- `commands.py`   `cynosure setup …`

A maintainer must not break: applying a file twice changes nothing the second time, nothing is ever taken
away, and whatever was not done is said and makes the exit code 1.
"""
