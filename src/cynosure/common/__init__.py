"""What every room may use: errors, clock, settings, secrets, telemetry.

Nothing here knows a database, a protocol or a catalog. Start with `errors.py` (the whole tree is
drawn at its top) and `clock.py` (time is an argument, so that any history can be replayed). `delegated/` has
the words that a catalog and its delegation service share.
"""
