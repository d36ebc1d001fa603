"""Who asks, and whether they may: principals, roles, tokens, grants, audit.

Read in this order:

- `ports.py`        the two contracts, `Authenticator` and `Authorizer`, and what a decision is
- `caller.py`       who asks; `standing.py` what that principal is and has right now
- `entities.py`     what the store holds; `principals.py` how it is found; `operations/` one file each
- `rbac/`           privileges, what each operation needs, how grants are stored
- `access/`         the internal authorizer, which decides by them, and its explanations
- `tokens/`         issuing, signing keys, verifying, other issuers (OIDC)
- `realms.py`, `bootstrap.py`   realms, and how one gets its first principal; `closing.py` how one ends
- `secret_hash.py`, `credentials.py`   what is kept of secrets, and secrets on their way to their owner
- `audit/`          what was done and what was refused, kept and delivered
- `require.py`      a decision made binding
- `committing.py`   operations committed at most once for each Idempotency-Key (`request_key.py`), and how
                    their results come back (`receipts.py`)

A maintainer must not break: everything fails closed, and rights are looked up for every request; what is
remembered is remembered by the head it was read at.
"""
