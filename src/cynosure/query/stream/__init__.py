"""What the gateway and a scan on an executor say to each other: one TLS connection per fragment and attempt.

    worker ─► Hello ─► Assigned | Refused ◄─ broker
    worker ─► Beat every 5 s, and with progress; Done | Left | Failed at the end
    broker ─► NewCredentials, Probe, Stop

- `frames.py`   the messages; `framing.py` four bytes of length (big endian), then msgpack

A maintainer must not break: secrets travel here and nowhere else; and a frame is bounded before it is read.
"""
