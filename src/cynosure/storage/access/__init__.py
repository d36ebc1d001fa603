"""What clients are given to reach files themselves: short-lived credentials, or signatures.

- `ports.py`         the words: a scope, a subject, what was vended; contracts of vendors and signers
- `vending.py`       vended credentials in memory: one request to the store's token service for all who ask
- `s3/`              sessions of AWS' token service and what speaks like it; signatures
- `gcs/`, `azure/`   downscoped tokens; user-delegation signatures
- `tokens.py`        tokens of clouds, renewed in time
- `exchange.py`      requests to token services

A maintainer must not break: what is given reaches no file outside its scope, and whoever builds a scope has
validated every location of it (`cynosure.catalog.file_access`). Names are data: they are escaped in whatever
language a store's policies are written in, never pasted.
"""
