"""A store with one catalog, in which tests say who has what."""

from tests.auth.rbac.conftest import world

__all__ = ["world"]
