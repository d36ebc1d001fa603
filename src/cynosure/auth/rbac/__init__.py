"""Role-based access as in Apache Polaris: principal, principal role, catalog role, privilege, securable.

- `privileges.py`   every privilege, and what satisfies it
- `operations.py`   what every operation needs
- `grants.py`       how grants and assignments are stored and changed

Who decides by these is in `cynosure.auth.access`.

A maintainer must not break: codes and keys are stored. Nothing here knows who asks.
"""
