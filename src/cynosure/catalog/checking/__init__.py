"""Does a catalog's storage work? Found out by doing what servers and clients do, on files of a check's own.

`steps.py` is how a check goes and what it tells, `probe.py` the files that it uses, `reaching.py` what the
server does itself, `giving.py` what clients are given and what that opens.

Must not break: a check touches no file but those that it made, and leaves none, whatever happens in between.
"""
