"""Amazon's Glue as a remote of pointers.

`client.py` has signed requests, `records.py` tables and databases, `pointers.py` what a remote of pointers
does.

Without Amazon's own packages: those look for keys, endpoints and proxies in the environment, in files of the
home directory and at the instance metadata service, and there is no setting that turns all of it off.

Held to moto, which checks no signatures and enforces no `VersionId`. So these are not proven by our tests:
that Glue takes our requests (the signature itself is held to botocore's), and that of two updates which name
the same version Glue refuses one, as its documentation says. That each update names one, is.
"""

from cynosure.federation.remotes.glue.pointers import open_glue

__all__ = ["open_glue"]
