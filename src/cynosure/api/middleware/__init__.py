"""What surrounds every operation, as plain ASGI callables.

Order, from outside: `telemetry` (sees every answer), `errors` (turns exceptions into answers),
`local_hosts` (where only this machine may ask) and `limits` (both may raise), then the router.
"""
