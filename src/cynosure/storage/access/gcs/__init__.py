"""Access to Google Cloud Storage.

- `service_account.py`  the key of a service account, as a file of Google's holds it
- `tokens.py`           tokens of the service account, and of another one that it impersonates
- `boundary.py`         what a downscoped token may reach, in Google's own language
- `vendor.py`           tokens for clients, downscoped to a table

A maintainer must not break: a key says who we are and nothing else. Addresses come from the catalog's storage
configuration, not from the key.
"""
