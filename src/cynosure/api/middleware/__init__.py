"""What surrounds every operation, as plain ASGI callables.

Order, from outside: `telemetry` (sees every answer), `errors` (turns exceptions into answers),
`limits` (may raise), then the router.
"""
