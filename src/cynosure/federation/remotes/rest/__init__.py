"""Remotes that speak Iceberg's REST protocol: a client that believes little.

- `remote.py`      `RestRemote`: the port, one request of the protocol for each of its methods
- `asking.py`      one request: where it goes, who sends it, what its answer means
- `addresses.py`   paths; the wire itself is `remotes/transport.py`
- `identity.py`    who we are: `oauth.py`, `sigv4.py`
- `config.py`      what the remote says about itself
- `bodies.py`, `answers.py`, `paging.py`   what is sent, and what is read
- `errors.py`      what a status means for a caller of ours
- `opening.py`     a client, by its connection

A maintainer must not break: everything an answer holds is a stranger's; and nothing is sent twice here,
except once more after a 401.
"""

from cynosure.federation.remotes.rest.opening import open_rest
from cynosure.federation.remotes.rest.remote import RestRemote

__all__ = ["RestRemote", "open_rest"]
