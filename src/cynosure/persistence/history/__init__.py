"""History as a feature: every commit of the retained past can be read, compared and restored.

`log.py` walks the chain back, `chain.py` knows it forward, `compare.py` says what changed between two
commits, `restore.py` makes an earlier state current again *as a new commit*, `reset.py` moves the pointer
itself after a disaster, `check.py` proves that everything reachable is there and readable.
"""
