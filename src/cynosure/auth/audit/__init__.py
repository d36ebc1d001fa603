"""What was done and what was refused: one ordered list of events per realm, kept and delivered.

The commit log is the source of what was done. Its commits are told as events and copied to the realm's
`audit` reference, where they outlive the history; what was refused or run is written there directly.

    commits of the realm and its catalogs ──► collect.py ──┐
    refusals at the gate ──► denials.py ───────────────────┤
    what services ran for others ──► queries.py ───────────┴─► journal.py ──► read.py     GET …/events
                                                                          └─► deliver.py  file, webhook

Read in this order:

- `events.py`      what is stored, and what readers and sinks are given
- `journal.py`     the `audit` reference: appending, scanning, the marks at both ends
- `told.py`        one commit as events; `backlog.py` the commits of one reference that were not told yet
- `collect.py`     all references of a realm, exactly once, with `shared_runs.py` and `catalog_names.py`;
  `retention.py` what is old goes
- `denials.py`     refusals, durable before they are answered; `write_limit.py` how many are written
- `queries.py`     statements that a trusted service ran for somebody
- `cursor.py`, `read.py`   one page of events, with filters and waiting
- `sink.py`, `file_sink.py`, `webhook_sink.py`, `deliver.py`   events told to others, at least once, in order
- `keeper.py`      what one instance of all servers does for all realms; `opened.py` all of it put together

A maintainer must not break: an event is appended together with the position it was read up to, so it is told
once; and nothing reaches an event but what `told.py`, `denials.py` and `queries.py` name, so no secret can.
"""
