"""What operations on realms, principals and roles refuse, extending the one tree.

A maintainer must not break: the text. Clients of the management API read the beginning of these messages
("Principal does not exist: etl"), so here the name belongs to the message and is not a detail behind it.
"""

from cynosure.common.errors import AlreadyExists, BadInput, Conflict, CynosureError, Named, NotFound


class NoSuchRealm(Named, NotFound):
    """No realm of this name in the store."""

    def __init__(self, name: str) -> None:
        super().__init__("Realm does not exist", fix="Check the Polaris-Realm header.", name=name)


class NoSuchPrincipal(Named, NotFound):
    """No principal of this name in the realm."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal does not exist", name=name)


class NoSuchPrincipalRole(Named, NotFound):
    """No principal role of this name in the realm."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal role does not exist", name=name)


class PrincipalExists(Named, AlreadyExists):
    """The principal's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal already exists", fix="Choose another name.", name=name)


class PrincipalRoleExists(Named, AlreadyExists):
    """The principal role's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal role already exists", fix="Choose another name.", name=name)


class BuiltIn(BadInput):
    """Taking it away would leave a realm that nobody can manage."""


class RealmClosed(Conflict):
    """The realm is being deleted; nothing is written to it any more."""


class RealmNotEmpty(CynosureError):
    """The realm has catalogs."""
