"""Whoever may not see all of a table gets nothing of it but what the restrictions leave, by any door.

- `types.py`      the two types of policies that restrict, and what attaching one to a table checks
- `doors.py`      every operation: whether a restricted principal may do it
- `readers.py`    who asks, with all the roles that count
- `in_force.py`   which policies on the way to a table restrict somebody; `anywhere.py` in the whole catalog
- `effective.py`  what follows from them for one version of a table; `answering.py` what is answered then
- `changing.py`   changes of a schema that would move a restriction away from what it is about
- `describing.py` what is in force, for people who ask
- `rule.py`       all of it behind one class, which `OpenCatalog` asks for every operation

A maintainer must not break: the rule is asked in `OpenCatalog.authorize`, after the permission and before
anything is done. No operation asks for itself, so none can forget to.
"""
