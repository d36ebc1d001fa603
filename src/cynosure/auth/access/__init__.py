"""The internal authorizer: decisions from roles and grants, by the tables of `cynosure.auth.rbac`.

- `authorizer.py`   the decision: a walk down the path, one lookup per securable and role
- `rules.py`        what does not follow from privileges
- `reach.py`        what principal roles have in one catalog at one head, remembered
- `explain.py`      the same decision, told with its reasons
- `visible.py`      what a caller may see, from the side of its grants

A maintainer must not break: a check costs what the path is long, never what the estate is large.
"""
