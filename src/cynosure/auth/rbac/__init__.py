"""Role-based access as Apache Polaris has it: principal → principal role → catalog role → privilege → securable.

- `privileges.py`   every privilege, and what satisfies it
- `operations.py`   what every operation needs
- `grants.py`       how grants are stored and looked up
- `authorizer.py`   the decision: a walk down the path, one lookup per securable and role
- `explain.py`      the same decision, told with its reasons

A maintainer must not break: a check costs what the path is long, never what the estate is large.
"""
