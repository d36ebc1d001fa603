"""Bearer tokens: our own, and those of other issuers.

A maintainer must not break: a signature, issuer, audience, algorithm or time that was not checked is not trusted,
and what a token says about rights is never more than a restriction of what its principal has now.
"""
