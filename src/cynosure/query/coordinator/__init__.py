"""Statements from their arrival to their end.

    submit ─► parse ─► wait ─► bind ─► plan ─► choose an engine ─► run ─► pages ─► audit

- `statement.py`     what the API asks, and what it is told
- `service.py`       all statements, each of its owner; `running.py` one of them; `admission.py` who may begin
- `answering.py`     what a statement does; `showing.py` SHOW and DESCRIBE, `explaining.py` EXPLAIN
- `binding.py`       names opened on behalf of the user, views down to their tables; `names.py`
- `policies.py`      filters and masks checked against the schema; `mappings.py` mapping tables looked up
- `relations.py`     one governed relation per mention; `fragments.py` its files split, `scheduling.py` packed
- `distribution.py`  which engine, and why; `execution.py` runs it, or locally when that failed in time
- `paging.py`        results, a few pages ahead of whoever fetches them
- `inline.py`        relations of the coordinator's own: `metadata_tables.py`, `runtime.py`
- `auditing.py`, `metrics.py`, `scrubbing.py` what is told of it afterwards
- `resources.py`     what all of them share; `at_once.py`; `thinking.py` threads that parse and bind

A maintainer must not break: policies are looked up for every statement; the coordinator cannot read rows of
tables (import contract); and what a failure says is scrubbed before anybody hears of it.
"""
