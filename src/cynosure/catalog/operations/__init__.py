"""What can be asked of a catalog: one file per operation.

The order inside each: resolve, authorize, act, answer. Reading operations ask `catalog.read()`; writing ones
hand a `prepare` to `catalog.commit()`, which may run several times and learns of the state only through the
view it is given.
"""
