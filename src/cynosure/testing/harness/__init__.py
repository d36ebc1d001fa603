"""Real processes, broken connections and time that a test owns.

- `processes.py`     start, probe, kill -9, stop, continue and restart real processes
- `probes.py`        ways to ask a process whether it is ready
- `ports.py`         free ports that stay free
- `fault_proxy.py`   a TCP proxy that loses answers, delays, refuses and cuts
- `faults.py`        what the proxy can do to a request, and the rules that say when
- `wires.py`         what a request is: plain TCP, HTTP, the PostgreSQL protocol
- `clock.py`         a clock that moves when the test says so
- `fixtures.py`      all of it as pytest fixtures: `pytest_plugins = ["cynosure.testing.harness.fixtures"]`

A maintainer must not break: no process, port or task outlives the test that made it.
"""
