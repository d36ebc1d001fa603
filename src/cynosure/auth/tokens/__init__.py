"""Bearer tokens: our own, and those of other issuers.

Read in this order:

- `jws.py`, `times.py`     a token as text: read strictly, its signature and its times checked
- `signing_keys.py`        the keys that a realm's own tokens are signed with; `key_store.py` keeps them
- `claims.py`, `scopes.py` what our own tokens say
- `authenticator.py`       who a token stands for
- `issue.py`               tokens for secrets, for other tokens, on behalf of others
- `failures.py`            slows down who guesses secrets
- `oidc/`                  tokens of other issuers
- `service_tokens.py`      the catalog's own, for the delegation service, and how that checks them

A maintainer must not break: a signature, issuer, audience, algorithm or time that was not checked is not
trusted, and what a token says about rights is never more than a restriction of what its principal has now.
"""
