"""The simulator: production code on several servers, one database and a bad network, from one seed.

`python -m cynosure.testing.sim 2000` runs 2000 seeds. Start with `world.py` (a run from seed to verdict);
then `loop.py` (time and scheduling), `faults.py` (the network), `chaos.py` (what befalls servers),
`client.py` and `operations.py` (the load), `checker.py` (what must be true), `model.py` (what it means).

`--keyed` adds requests with an Idempotency-Key: `keyed_load.py`, `keyed_client.py` and `keyed_work.py` (the
load), `keyed_checker.py` (what must be true), `keyed_history.py` (what is recorded for it).
"""

from cynosure.testing.sim.history import BrokenRule
from cynosure.testing.sim.server import Parts
from cynosure.testing.sim.world import Run, run_keyed_seed, run_seed

__all__ = ["BrokenRule", "Parts", "Run", "run_keyed_seed", "run_seed"]
