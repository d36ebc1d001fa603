"""Requests with an Idempotency-Key whose server dies, or stands still, at every step of them.

    halting.py      a backend that ends or stops its own process at a chosen write
    mutations.py    one of each kind of request that changes something: content.py, management.py
    world.py        what they are prepared in
    probes.py       how their effects are looked at
    pair.py         two servers on one store, of which the first halts
    chain.py        what is in the store: which request was committed how often
    trial.py        one request, one step, one fault, and what is wrong with what came of it
    table.py        all of it as a page of the documentation

Must not break: servers are what users run. What halts is a backend that is installed beside them, as anybody
may install one.
"""
