"""What operations on realms, principals and roles refuse, extending the one tree.

A maintainer must not break: the text. Clients of the management API read the beginning of these messages
("Principal does not exist: etl"), so here the name belongs to the message and is not a detail behind it.
"""

from cynosure.common.errors import AlreadyExists, BadInput, Conflict, CynosureError, NotFound


class _Named:
    """Puts the name right behind the message."""

    message: str
    fix: str
    details: dict[str, object]

    def __str__(self) -> str:
        text = f"{self.message}: {self.details['name']}"
        return f"{text}. {self.fix}" if self.fix else text


class NoSuchRealm(_Named, NotFound):
    """No realm of this name in the store."""

    def __init__(self, name: str) -> None:
        super().__init__("Realm does not exist", fix="Check the Polaris-Realm header.", name=name)


class NoSuchPrincipal(_Named, NotFound):
    """No principal of this name in the realm."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal does not exist", name=name)


class NoSuchPrincipalRole(_Named, NotFound):
    """No principal role of this name in the realm."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal role does not exist", name=name)


class PrincipalExists(_Named, AlreadyExists):
    """The principal's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal already exists", fix="Choose another name.", name=name)


class PrincipalRoleExists(_Named, AlreadyExists):
    """The principal role's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Principal role already exists", fix="Choose another name.", name=name)


class BuiltIn(BadInput):
    """Taking it away would leave a realm that nobody can manage."""


class RealmClosed(Conflict):
    """The realm is being deleted; nothing is written to it any more."""


class RealmNotEmpty(CynosureError):
    """The realm has catalogs."""
