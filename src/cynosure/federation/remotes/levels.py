"""Namespaces of remotes that have one level of them."""

from cynosure.catalog.names import Namespace
from cynosure.common.errors import BadInput


def require_level(namespace: Namespace) -> str:
    """The one level; refused when there are more or none."""
    if len(namespace) != 1:
        raise BadInput(
            "This remote catalog has one level of namespaces",
            field="namespace",
            fix="Name a namespace of one level.",
        )
    return namespace[0]
