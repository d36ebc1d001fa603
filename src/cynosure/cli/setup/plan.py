"""The steps between what a server has and what a file says. Pure: the server is asked before.

A maintainer must not break: a step is planned only if it changes something, so that a second run plans none.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from cynosure.cli.names import make_absolute
from cynosure.cli.setup.document import KEY_FIELDS, CatalogPart, CatalogRolePart, Document, Properties
from cynosure.cli.setup.policies import PresentPolicies, plan_policies
from cynosure.client.catalog import Namespace
from cynosure.client.management_types import Catalog, CatalogRole, Grant, Principal, PrincipalRole

BASE_LOCATION: Final = "default-base-location"
Key = tuple[str, ...]


class PresentCatalog(Struct, frozen=True):
    """What a server has of a catalog, as far as a file speaks of it."""

    catalog: Catalog
    roles: Mapping[str, CatalogRole] = field(default_factory=dict)
    assignees: Mapping[str, frozenset[str]] = field(default_factory=dict)
    grants: Mapping[str, frozenset[Grant]] = field(default_factory=dict)
    namespaces: Mapping[Namespace, Properties] = field(default_factory=dict)
    policies: PresentPolicies = PresentPolicies()


class Present(Struct, frozen=True):
    """What a server has, as far as a file speaks of it."""

    principals: Mapping[str, Principal] = field(default_factory=dict)
    roles: Mapping[str, PrincipalRole] = field(default_factory=dict)
    roles_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    catalogs: Mapping[str, PresentCatalog] = field(default_factory=dict)


class Step(Struct, frozen=True):
    """One change."""

    action: str
    """`create`, `update`, `assign`, `attach`, `grant`; or `refuse` for what a setup does not do."""
    key: Key
    """What it makes or changes: kind, then names."""
    text: str
    """What it does, for people."""
    needs: tuple[Key, ...] = ()
    """What must be there. Steps before this one may make it."""
    payload: Any = None


def make_plan(document: Document, present: Present, bases: Mapping[str, str]) -> list[Step]:
    """The steps, in an order in which each finds what it needs. `bases`: where new catalogs go, by name."""
    steps = [*_plan_roles(document, present), *_plan_principals(document, present)]
    known_roles = set(present.roles) | set(document.role_parts())
    for part in document.catalogs:
        steps += _plan_catalog(part, present.catalogs.get(part.name), bases, known_roles)
    return steps


def _plan_roles(document: Document, present: Present) -> list[Step]:
    steps = []
    for name, part in document.role_parts().items():
        found = present.roles.get(name)
        key = ("principal role", name)
        if found is None:
            steps.append(Step("create", key, f"principal role {name}", payload=part))
        elif changed := _changed(found.properties, part.properties):
            text = f"principal role {name}: {', '.join(changed)}"
            steps.append(Step("update", key, text, payload=(found, changed)))
    return steps


def _plan_principals(document: Document, present: Present) -> list[Step]:
    steps = []
    known_roles = set(present.roles) | set(document.role_parts())
    for name, part in document.principals.items():
        found = present.principals.get(name)
        key = ("principal", name)
        if found is None:
            steps.append(Step("create", key, f"principal {name}", payload=part))
        elif changed := _changed(found.properties, part.properties):
            text = f"principal {name}: {', '.join(changed)}"
            steps.append(Step("update", key, text, payload=(found, changed)))
        for role in part.roles:
            if role not in present.roles_of.get(name, frozenset()):
                text = f"principal role {role} to principal {name}"
                needs = (key, ("principal role", role))
                steps.append(
                    _assign(("assignment", role, name), text, needs, (name, role), role in known_roles)
                )
    return steps


def _plan_catalog(
    part: CatalogPart, present: PresentCatalog | None, bases: Mapping[str, str], known_roles: set[str]
) -> list[Step]:
    key = ("catalog", part.name)
    if present is None:
        base = part.default_base_location or bases.get(part.name, "")
        steps = [Step("create", key, f"catalog {part.name} at {base or 'no location'}", payload=(part, base))]
    else:
        steps = _plan_catalog_change(part, present.catalog)
    has = present.namespaces if present else {}
    for levels, properties in part.namespace_parts().items():
        text = f"namespace {'.'.join(levels)} of {part.name}"
        own = ("namespace", part.name, *levels)
        if levels not in has:
            payload = (part.name, levels, properties)
            needs = (key, *([own[:-1]] if len(levels) > 1 else ()))
            steps.append(Step("create", own, text, needs, payload))
        elif changed := _changed(has[levels], properties):
            text = f"{text}: {', '.join(changed)}"
            steps.append(Step("update", own, text, (key,), (part.name, levels, changed)))
    steps += _plan_policies(part, present)
    for name, role in part.roles.items():
        steps += _plan_catalog_role(part.name, name, role, present, known_roles)
    return steps


def _plan_policies(part: CatalogPart, present: PresentCatalog | None) -> list[Step]:
    steps = []
    for each in plan_policies(part.policies, present.policies if present else PresentPolicies()):
        namespace, name = each.place
        own = ("policy", part.name, *namespace, name)
        needs: tuple[Key, ...] = (("catalog", part.name), ("namespace", part.name, *namespace))
        key = own
        if each.action == "attach":
            key, needs = ("attachment", part.name, *each.names), (*needs, own)
        steps.append(Step(each.action, key, f"{each.text} of {part.name}", needs, (part.name, each)))
    return steps


def _plan_catalog_change(part: CatalogPart, found: Catalog) -> list[Step]:
    steps = []
    key = ("catalog", part.name)
    base = part.default_base_location
    if base is not None and _same(base) != _same(found.base_location):
        text = (
            f"catalog {part.name}: its location is {found.base_location}, not {base}; "
            "change it with cynosure catalogs update"
        )
        steps.append(Step("refuse", key, text))
    if part.type.upper() != found.type:
        text = f"catalog {part.name}: it is {found.type.lower()}, not {part.type.lower()}"
        steps.append(Step("refuse", key, text))
        return steps
    if part.storage_type is not None and part.storage_type.upper() != found.storage_type:
        text = f"catalog {part.name}: its storage is {found.storage_type}, not {part.storage_type.upper()}"
        steps.append(Step("refuse", key, text))
        return steps
    # The server never tells a key, so whether it differs cannot be known: it is set with a new catalog only.
    options = {name: value for name, value in part.storage_options().items() if name not in KEY_FIELDS}
    current = found.storage_config_info
    storage = {name: value for name, value in options.items() if current.get(name) != value}
    known = {_same(each) for each in (*found.allowed_locations, found.base_location)}
    added = [each for each in part.allowed_locations if _same(each) not in known]
    if added:
        storage["allowedLocations"] = [*found.allowed_locations, *map(make_absolute, added)]
    properties = _changed(found.properties, part.properties)
    if part.connection is not None and not found.connection_config_info:
        text = f"catalog {part.name}: it was created without a connection, which cannot be given to it"
        steps.append(Step("refuse", key, text))
        return steps
    connection = None if part.connection is None else part.connection.change(found)
    if storage or properties or connection is not None:
        changes = (*properties, *storage, *(() if connection is None else ("connection",)))
        text = f"catalog {part.name}: {', '.join(changes)}"
        steps.append(Step("update", key, text, payload=(found, properties, storage, connection)))
    return steps


def _plan_catalog_role(
    catalog: str, name: str, part: CatalogRolePart, present: PresentCatalog | None, known_roles: set[str]
) -> list[Step]:
    steps = []
    key = ("catalog role", catalog, name)
    text = f"catalog role {name} of {catalog}"
    needs: tuple[Key, ...] = (("catalog", catalog), key)
    found = present.roles.get(name) if present else None
    # The server makes this one with the catalog.
    if found is None and name != "catalog_admin":
        steps.append(Step("create", key, text, needs[:1], (catalog, name, part.properties)))
    elif found is not None and (changed := _changed(found.properties, part.properties)):
        changes = f"{text}: {', '.join(changed)}"
        steps.append(Step("update", key, changes, needs[:1], (catalog, found, changed)))
    held = present.assignees.get(name, frozenset()) if present else frozenset[str]()
    steps += [
        _assign(
            ("catalog assignment", catalog, name, role),
            f"{text} to principal role {role}",
            (*needs, ("principal role", role)),
            (role, catalog, name),
            role in known_roles,
        )
        for role in part.assign_to
        if role not in held
    ]
    granted = present.grants.get(name, frozenset()) if present else frozenset[Grant]()
    for grant in part.privileges.grants():
        if grant not in granted:
            on = ".".join((*grant.namespace, *([grant.name] if grant.name else ()))) or catalog
            granting = f"{grant.privilege} on {grant.type} {on} to {text}"
            above = (("namespace", catalog, *grant.namespace),) if grant.namespace else ()
            own = ("grant", catalog, name, grant.privilege, grant.type, on)
            steps.append(Step("grant", own, granting, (*needs, *above), (catalog, name, grant)))
    return steps


def _assign(key: Key, text: str, needs: tuple[Key, ...], payload: Any, is_known: bool) -> Step:
    if not is_known:
        return Step("refuse", key, f"{text}: there is no such principal role")
    return Step("assign", key, text, needs, payload)


def _changed(current: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if current.get(name) != value}


def _same(location: str) -> str:
    """A location as it is compared: a path and its URL are one, with or without a slash at the end."""
    return make_absolute(location).rstrip("/")
