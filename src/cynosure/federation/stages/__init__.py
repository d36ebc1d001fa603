"""What happens before a remote is asked, and behind it: one small file per stage, in this order.

Before: `names.py` (what this kind of remote cannot have), `freshness.py` (what was checked a moment ago),
`partial.py` (who may know anything of it), `switch.py` (whether changes go on), `together.py` (the same
question, asked once for all who wait). Behind: the mirror, then `access.py` (whose credentials clients get).

A maintainer must not break: whoever has no right to what a request is about causes no request to the remote.
"""
