"""What catalog operations refuse, extending the one tree.

A maintainer must not break: the text. Iceberg clients and their tests read the beginning of these messages
("Table does not exist: a.b"), so here the name belongs to the message and is not a detail behind it.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Decision, Target
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.require import AccessDenied
from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    CynosureError,
    Forbidden,
    Named,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)


class NoSuchCatalog(Named, NotFound):
    """No catalog of this name in the realm."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "Catalog does not exist",
            fix="Create it with 'cynosure catalogs create', or check the name.",
            name=name,
        )


class NoSuchNamespace(Named, NotFound):
    """No namespace of this name in the catalog."""

    def __init__(self, name: str) -> None:
        super().__init__("Namespace does not exist", name=name)


class NoSuchTable(Named, NotFound):
    """No table of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__("Table does not exist", name=name)


class NoSuchView(Named, NotFound):
    """No view of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__("View does not exist", name=name)


class NoSuchGenericTable(Named, NotFound):
    """No generic table of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__("Generic table does not exist", name=name)


class NoSuchPolicy(Named, NotFound):
    """No policy of this name in the namespace."""

    def __init__(self, name: str) -> None:
        super().__init__("Policy does not exist", name=name)


class NoSuchTarget(Named, NotFound):
    """Nothing of this name that a policy could be attached to, or detached from."""

    def __init__(self, name: str) -> None:
        super().__init__("Target of the policy does not exist", name=name)


class NoSuchMapping(NotFound):
    """The policy is not attached to this."""

    def __init__(self, policy: str, target: str) -> None:
        super().__init__("The policy is not attached to this target", policy=policy, target=target)


class NoSuchPlan(Named, NotFound):
    """No scan plan of this id, or none of this caller and table, or none any more."""

    def __init__(self, name: str) -> None:
        super().__init__("Scan plan does not exist", fix="Plan the scan again.", name=name[:200])


class NoSuchPlanTask(Named, NotFound):
    """No such part of a scan plan, or not for this caller and table, or not any more."""

    def __init__(self, name: str) -> None:
        super().__init__("Plan task does not exist", fix="Plan the scan again.", name=name[:200])


class NoSuchTask(Named, NotFound):
    """No task of this id."""

    def __init__(self, name: str) -> None:
        super().__init__("Task does not exist", fix="List the tasks.", name=name[:200])


class NoSuchCatalogRole(Named, NotFound):
    """No catalog role of this name in the catalog."""

    def __init__(self, name: str) -> None:
        super().__init__("Catalog role does not exist", name=name)


class NoSuchDropped(Named, NotFound):
    """Nothing that can be restored has this id."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "Nothing dropped has this id",
            fix="List what can be restored; it may have been restored, or its window has passed.",
            name=name,
        )


class CatalogExists(Named, AlreadyExists):
    """The catalog's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Catalog already exists", fix="Choose another name.", name=name)


class CatalogRoleExists(Named, AlreadyExists):
    """The catalog role's name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__("Catalog role already exists", fix="Choose another name.", name=name)


class NamespaceExists(Named, AlreadyExists):
    """The namespace is there already."""

    def __init__(self, name: str) -> None:
        super().__init__("Namespace already exists", name=name)


class TableExists(Named, AlreadyExists):
    """A table has this name; tables and views share one space of names."""

    def __init__(self, name: str, *, is_wanted_by_view: bool = False) -> None:
        text = "Table with same name already exists" if is_wanted_by_view else "Table already exists"
        super().__init__(text, name=name)


class ViewExists(Named, AlreadyExists):
    """A view has this name; tables and views share one space of names."""

    def __init__(self, name: str, *, is_wanted_by_table: bool = False) -> None:
        text = "View with same name already exists" if is_wanted_by_table else "View already exists"
        super().__init__(text, name=name)


class GenericTableExists(Named, AlreadyExists):
    """A generic table has this name; it shares one space of names with tables and views."""

    def __init__(self, name: str, *, is_wanted_by_other: bool = False) -> None:
        text = (
            "Generic table with same name already exists"
            if is_wanted_by_other
            else "Generic table already exists"
        )
        super().__init__(text, name=name)


class PolicyExists(Named, AlreadyExists):
    """A policy of the namespace has this name."""

    def __init__(self, name: str) -> None:
        super().__init__("Policy already exists", fix="Choose another name.", name=name)


class PolicyTypeAttached(AlreadyExists):
    """Another policy of the same type is attached to the target already."""

    def __init__(self, policy_type: str, other: str, target: str) -> None:
        super().__init__(
            "Another policy of this type is attached to the target",
            fix="Detach the other one first.",
            type=policy_type,
            attached=other,
            target=target,
        )


class PolicyVersionMismatch(Conflict):
    """The policy was changed since the version that the change is meant for."""

    def __init__(self, policy: str, expected: int, current: int) -> None:
        super().__init__(
            "The policy has another version than the change is meant for",
            fix="Load it, and make the change to what it says now.",
            policy=policy,
            expected=expected,
            current=current,
        )


class PolicyInUse(CynosureError):
    """The policy is attached to something."""

    def __init__(self, policy: str, targets: int) -> None:
        super().__init__(
            "The policy is attached to targets",
            fix="Detach it first, or drop it with detach-all. Tables that can still be restored count.",
            policy=policy,
            targets=targets,
        )


class RenameTargetTaken(AlreadyExists):
    """Something has the name that a table or view is to get."""

    def __init__(self, source: str, destination: str, *, taken_by: str) -> None:
        super().__init__("The new name is taken", source=source, destination=destination, taken_by=taken_by)

    def __str__(self) -> str:
        source, destination, kind = (self.details[each] for each in ("source", "destination", "taken_by"))
        return f"Cannot rename {source} to {destination}. {kind} already exists"


class NotEmpty(CynosureError):
    """What still holds something is not dropped."""


class NamespaceNotEmpty(NotEmpty):
    """The namespace holds tables, views, policies or namespaces."""

    def __init__(self, name: str) -> None:
        super().__init__("Namespace is not empty", fix="Drop or move what is in it first.", name=name)

    def __str__(self) -> str:
        return f"Namespace {self.details['name']} is not empty. {self.fix}"


class CatalogNotEmpty(NotEmpty):
    """The catalog holds namespaces."""


class CascadeBlocked(NotEmpty):
    """Something below is in the way of dropping all of it."""

    def __init__(self, *, in_the_way: list[str], dropped: dict[str, int]) -> None:
        super().__init__(
            "Not all of it can be dropped",
            fix="See to what is in the way, and repeat the request: it goes on where it stopped.",
            in_the_way=in_the_way,
            dropped=dropped,
        )


class CascadeDenied(AccessDenied):
    """Something below may not be dropped by this caller. The first such thing is what the audit is told."""

    def __init__(
        self, caller: Caller, first: AccessDenied, *, in_the_way: list[str], dropped: dict[str, int]
    ) -> None:
        super().__init__(caller, first.operation, first.targets, first.decision)
        self.message = "Principal may not drop all that is below"
        self.details = {"principal": caller.principal, "in_the_way": in_the_way, "dropped": dropped}


class CascadeUnderWay(OutcomeUnknown):
    """The time of the request is over. What was begun goes on; a repeated request goes on with the rest."""

    def __init__(self, *, dropped: dict[str, int], tasks: list[str], catalog: str) -> None:
        purges = (
            f" Purges under way: {', '.join(tasks)} (cynosure tasks list --catalog {catalog})."
            if tasks
            else ""
        )
        super().__init__(
            "Not all of it is dropped yet",
            fix=f"Repeat the request: it goes on where it is.{purges}",
            dropped=dropped,
        )


class CatalogClosed(Conflict):
    """The catalog is being dropped; nothing is written to it any more."""


class LocationRefused(CynosureError):
    """The location is outside what the catalog may use, or belongs to another table."""


class CatalogLocationRefused(LocationRefused):
    """A catalog cannot have this location: it is another's, or not inside what it allows."""


class OwnedElsewhere(CynosureError):
    """The catalog is external: its tables and views are changed where they are owned."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            "Tables and views of an external catalog are changed by the catalog that owns them",
            fix="Change it there; this catalog learns of it.",
            operation=operation,
        )


class OutdatedNotification(Named, AlreadyExists):
    """A notification with the same or a later timestamp was taken before."""

    def __init__(self, name: str) -> None:
        super().__init__("A notification with a newer timestamp has been admitted for table", name=name)


class DelegationOff(Forbidden):
    """The catalog is external and gives no access to files."""

    def __init__(self, catalog: str, *, property: str) -> None:
        super().__init__(
            "This external catalog gives clients no access to files",
            fix=f"Load it without asking for access, or set the catalog's property {property} to true.",
            catalog=catalog,
        )


class Unprocessable(CynosureError):
    """Each part of the request is well-formed; together they contradict each other."""


class InvalidName(BadInput):
    """A name that no catalog object can have."""


class InvalidPolicy(BadInput):
    """The content is not what policies of the type say."""


class RestrictedByPolicy(AccessDenied):
    """A policy restricts what the caller may see of a table, and this would give or change more."""

    def __init__(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        *,
        policies: tuple[str, ...],
        reason: str,
    ) -> None:
        super().__init__(caller, operation, targets, Decision(is_allowed=False, reason=reason))
        self.message = "A policy restricts what this principal may read and do"
        self.details["policies"] = ", ".join(policies)
        self.policies = policies


class RestrictedColumn(CynosureError):
    """A policy restricts a column by this name, so it stays the field and type that it is."""

    def __init__(self, policy: str, *, column: str) -> None:
        super().__init__(
            "A policy restricts this column, which therefore cannot be renamed, dropped or made anew",
            fix="Have the policy changed or detached first.",
            policy=policy,
            column=column,
        )


class NotAttachable(BadInput):
    """Policies cannot be attached to things of this kind."""


class NotImported(Named, Unavailable):
    """Only the metadata file of a table is known; it has to be imported before it can be changed."""

    def __init__(self, name: str) -> None:
        super().__init__("Table is not imported yet", fix="Load it, and try again.", name=name)
