"""Access to S3 and to stores that speak its protocol.

- `keys.py`            whose keys the server itself uses: static ones, or those of an assumed role
- `named_keys.py`      keys of the server's settings, and which catalogs may use them
- `sigv4.py`           the signature of one request
- `sts.py`             one request to the token service
- `session_policy.py`  what a session may do, as a document in the store's policy language
- `vendor.py`          from a scope to credentials
- `requests.py`        what a client's request would do, with `addresses.py`, `covered_headers.py` and
                       `deletion.py` for its URI, its headers and the body of a bulk deletion
- `signer.py`          signing it; `trials.py`: whether the store then holds the client to it

A maintainer must not break: a table's name is never pasted into a policy, and no secret leaves but in what a
vendor returns.
"""
