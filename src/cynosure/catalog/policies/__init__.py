"""Policies: what is attached to what, and which kinds of policies there are.

- `mappings.py`      how the index `mappings` holds attachments, in both directions
- `attached.py`      everything that is attached on the way to a table
- `applicable.py`    which of it counts: inheritance
- `types.py`         what a type of policies is; `system_types.py` those that Apache Polaris has too
- `maintenance_config.py`, `windows.py`  what the keys in those may be
- `placing.py`       what a policy can be attached to, by the names that a user says

The operations are in `catalog/operations/`, the registry of all types is `catalog/policy_types.py`, the
stored policy is `entities.PolicyEntity`.

A maintainer must not break: a policy that restricts what somebody reads is managed by those who manage
access, never by those who manage content: the filtered must not lift their own filter.
"""
