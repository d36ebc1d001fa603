"""Tokens of other issuers: OpenID providers that the settings name.

- `issuer.py`    one of them: its tokens checked
- `keys.py`      the keys it publishes, fetched and kept
- `accounts.py`  its accounts, bound to principals
- `groups.py`    its groups, as principal roles

A maintainer must not break: an account is bound by issuer *and* subject. A name that an issuer gives to
somebody else never leads to the principal of the one who had it before.
"""
