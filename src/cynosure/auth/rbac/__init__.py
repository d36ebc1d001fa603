"""Role-based access as in Apache Polaris: principal, principal role, catalog role, privilege, securable.

- `privileges.py`   every privilege, and what satisfies it
- `operations.py`   what every operation needs; `rules.py` what does not follow from privileges
- `grants.py`       how grants and assignments are stored and changed
- `reach.py`        what principal roles have in one catalog at one head, remembered
- `authorizer.py`   the decision: a walk down the path, one lookup per securable and role
- `explain.py`      the same decision, told with its reasons
- `visible.py`      what a caller may see, from the side of its grants

A maintainer must not break: a check costs what the path is long, never what the estate is large.
"""
