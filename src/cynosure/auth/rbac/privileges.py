"""Every privilege, its stored code, and which other privileges satisfy it.

A set of privileges is an integer with one bit per code: that is how grants are stored and how a check is one
`and`.

Must not break: codes are stored. A privilege never gets another code, and a code is never used again.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Privilege(IntEnum):
    """What may be granted, or be held on a realm."""

    SERVICE_MANAGE_ACCESS = 1
    CATALOG_MANAGE_ACCESS = 2
    CATALOG_ROLE_USAGE = 3
    PRINCIPAL_ROLE_USAGE = 4
    NAMESPACE_CREATE = 5
    TABLE_CREATE = 6
    VIEW_CREATE = 7
    NAMESPACE_DROP = 8
    TABLE_DROP = 9
    VIEW_DROP = 10
    NAMESPACE_LIST = 11
    TABLE_LIST = 12
    VIEW_LIST = 13
    NAMESPACE_READ_PROPERTIES = 14
    TABLE_READ_PROPERTIES = 15
    VIEW_READ_PROPERTIES = 16
    NAMESPACE_WRITE_PROPERTIES = 17
    TABLE_WRITE_PROPERTIES = 18
    VIEW_WRITE_PROPERTIES = 19
    TABLE_READ_DATA = 20
    TABLE_WRITE_DATA = 21
    NAMESPACE_FULL_METADATA = 22
    TABLE_FULL_METADATA = 23
    VIEW_FULL_METADATA = 24
    CATALOG_CREATE = 25
    CATALOG_DROP = 26
    CATALOG_LIST = 27
    CATALOG_READ_PROPERTIES = 28
    CATALOG_WRITE_PROPERTIES = 29
    CATALOG_FULL_METADATA = 30
    CATALOG_MANAGE_METADATA = 31
    CATALOG_MANAGE_CONTENT = 32
    PRINCIPAL_LIST_GRANTS = 33
    PRINCIPAL_ROLE_LIST_GRANTS = 34
    CATALOG_ROLE_LIST_GRANTS = 35
    CATALOG_LIST_GRANTS = 36
    NAMESPACE_LIST_GRANTS = 37
    TABLE_LIST_GRANTS = 38
    VIEW_LIST_GRANTS = 39
    CATALOG_MANAGE_GRANTS_ON_SECURABLE = 40
    NAMESPACE_MANAGE_GRANTS_ON_SECURABLE = 41
    TABLE_MANAGE_GRANTS_ON_SECURABLE = 42
    VIEW_MANAGE_GRANTS_ON_SECURABLE = 43
    PRINCIPAL_CREATE = 44
    PRINCIPAL_DROP = 45
    PRINCIPAL_LIST = 46
    PRINCIPAL_READ_PROPERTIES = 47
    PRINCIPAL_WRITE_PROPERTIES = 48
    PRINCIPAL_FULL_METADATA = 49
    PRINCIPAL_MANAGE_GRANTS_ON_SECURABLE = 50
    PRINCIPAL_MANAGE_GRANTS_FOR_GRANTEE = 51
    PRINCIPAL_ROTATE_CREDENTIALS = 52
    PRINCIPAL_RESET_CREDENTIALS = 53
    PRINCIPAL_ROLE_CREATE = 54
    PRINCIPAL_ROLE_DROP = 55
    PRINCIPAL_ROLE_LIST = 56
    PRINCIPAL_ROLE_READ_PROPERTIES = 57
    PRINCIPAL_ROLE_WRITE_PROPERTIES = 58
    PRINCIPAL_ROLE_FULL_METADATA = 59
    PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE = 60
    PRINCIPAL_ROLE_MANAGE_GRANTS_FOR_GRANTEE = 61
    CATALOG_ROLE_CREATE = 62
    CATALOG_ROLE_DROP = 63
    CATALOG_ROLE_LIST = 64
    CATALOG_ROLE_READ_PROPERTIES = 65
    CATALOG_ROLE_WRITE_PROPERTIES = 66
    CATALOG_ROLE_FULL_METADATA = 67
    CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE = 68
    CATALOG_ROLE_MANAGE_GRANTS_FOR_GRANTEE = 69
    POLICY_CREATE = 70
    POLICY_READ = 71
    POLICY_DROP = 72
    POLICY_WRITE = 73
    POLICY_LIST = 74
    POLICY_FULL_METADATA = 75
    POLICY_ATTACH = 76
    POLICY_DETACH = 77
    CATALOG_ATTACH_POLICY = 78
    NAMESPACE_ATTACH_POLICY = 79
    TABLE_ATTACH_POLICY = 80
    CATALOG_DETACH_POLICY = 81
    NAMESPACE_DETACH_POLICY = 82
    TABLE_DETACH_POLICY = 83
    POLICY_MANAGE_GRANTS_ON_SECURABLE = 84
    TABLE_ASSIGN_UUID = 85
    TABLE_UPGRADE_FORMAT_VERSION = 86
    TABLE_ADD_SCHEMA = 87
    TABLE_SET_CURRENT_SCHEMA = 88
    TABLE_ADD_PARTITION_SPEC = 89
    TABLE_ADD_SORT_ORDER = 90
    TABLE_SET_DEFAULT_SORT_ORDER = 91
    TABLE_ADD_SNAPSHOT = 92
    TABLE_SET_SNAPSHOT_REF = 93
    TABLE_REMOVE_SNAPSHOTS = 94
    TABLE_REMOVE_SNAPSHOT_REF = 95
    TABLE_SET_LOCATION = 96
    TABLE_SET_PROPERTIES = 97
    TABLE_REMOVE_PROPERTIES = 98
    TABLE_SET_STATISTICS = 99
    TABLE_REMOVE_STATISTICS = 100
    TABLE_REMOVE_PARTITION_SPECS = 101
    TABLE_MANAGE_STRUCTURE = 102

    @property
    def bit(self) -> int:
        """The set that holds only this one."""
        return 1 << self.value


PrivilegeSet = int
"""One bit per code."""
NONE: Final[PrivilegeSet] = 0


def set_of(privileges: Iterable[Privilege]) -> PrivilegeSet:
    """The set of these."""
    bits = NONE
    for each in privileges:
        bits |= 1 << each
    return bits


def members(privileges: PrivilegeSet) -> Iterator[Privilege]:
    """Those in a set, by code. What this version does not know is left out: it grants nothing here."""
    for each in Privilege:
        if privileges >> each & 1:
            yield each


P = Privilege
_named = Privilege.__getitem__
_CMC, _CMM = P.CATALOG_MANAGE_CONTENT, P.CATALOG_MANAGE_METADATA
_CMA, _SMA = P.CATALOG_MANAGE_ACCESS, P.SERVICE_MANAGE_ACCESS


def _by_kind(kind: str) -> dict[Privilege, set[Privilege]]:
    """Of namespaces, tables and views alike."""
    create, drop, see = _named(f"{kind}_CREATE"), _named(f"{kind}_DROP"), _named(f"{kind}_LIST")
    read, write, full = (
        _named(f"{kind}_READ_PROPERTIES"),
        _named(f"{kind}_WRITE_PROPERTIES"),
        _named(f"{kind}_FULL_METADATA"),
    )
    admin = {full, _CMM, _CMC}
    data = {P.TABLE_READ_DATA, P.TABLE_WRITE_DATA} if kind == "TABLE" else set()
    return {
        create: admin,
        drop: admin,
        # Dropping alone does not let one see.
        see: admin | {create, read, write} | data,
        read: admin | {write} | data,
        write: admin | (data & {P.TABLE_WRITE_DATA}),
        full: {_CMM, _CMC},
    }


_FINE_GRAINED: Final = tuple(
    each for each in P if P.TABLE_ASSIGN_UUID <= each <= P.TABLE_REMOVE_PARTITION_SPECS
)
_NOT_STRUCTURE: Final = {P.TABLE_ADD_SNAPSHOT, P.TABLE_SET_SNAPSHOT_REF}


def _table_updates() -> dict[Privilege, set[Privilege]]:
    writers = {P.TABLE_WRITE_PROPERTIES, P.TABLE_WRITE_DATA, P.TABLE_FULL_METADATA, _CMM, _CMC}
    return {
        each: writers if each in _NOT_STRUCTURE else writers | {P.TABLE_MANAGE_STRUCTURE}
        for each in _FINE_GRAINED
    }


def _of_realm(kind: str) -> dict[Privilege, set[Privilege]]:
    """Of principals and principal roles: who manages the service manages them."""
    full = _named(f"{kind}_FULL_METADATA")
    create, see = _named(f"{kind}_CREATE"), _named(f"{kind}_LIST")
    read, write = _named(f"{kind}_READ_PROPERTIES"), _named(f"{kind}_WRITE_PROPERTIES")
    on = _named(f"{kind}_MANAGE_GRANTS_ON_SECURABLE")
    for_grantee = _named(f"{kind}_MANAGE_GRANTS_FOR_GRANTEE")
    return {
        create: {full, _SMA},
        _named(f"{kind}_DROP"): {full, _SMA},
        see: {create, read, write, full, _SMA},
        read: {write, full, _SMA},
        write: {full, _SMA},
        full: {_SMA},
        on: {_SMA},
        for_grantee: {_SMA},
        _named(f"{kind}_LIST_GRANTS"): {on, for_grantee, _SMA},
    }


def _of_access() -> dict[Privilege, set[Privilege]]:
    """Catalog roles and grants: who manages access to a catalog manages them."""
    full = P.CATALOG_ROLE_FULL_METADATA
    create, see = P.CATALOG_ROLE_CREATE, P.CATALOG_ROLE_LIST
    read, write = P.CATALOG_ROLE_READ_PROPERTIES, P.CATALOG_ROLE_WRITE_PROPERTIES
    on, for_grantee = P.CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE, P.CATALOG_ROLE_MANAGE_GRANTS_FOR_GRANTEE
    satisfied = {
        create: {full, _CMA},
        P.CATALOG_ROLE_DROP: {full, _CMA},
        see: {create, read, write, full, _CMA},
        read: {write, full, _CMA},
        write: {full, _CMA},
        full: {_CMA},
        on: {_CMA},
        for_grantee: {_CMA},
        P.CATALOG_ROLE_LIST_GRANTS: {on, for_grantee, _CMA},
        P.POLICY_MANAGE_GRANTS_ON_SECURABLE: {_CMA},
    }
    for securable in ("CATALOG", "NAMESPACE", "TABLE", "VIEW"):
        manage = _named(f"{securable}_MANAGE_GRANTS_ON_SECURABLE")
        satisfied[manage] = {_CMA}
        satisfied[_named(f"{securable}_LIST_GRANTS")] = {manage, _CMA}
    return satisfied


def _of_policies() -> dict[Privilege, set[Privilege]]:
    full = P.POLICY_FULL_METADATA
    admin = {full, _CMM, _CMC}
    satisfied = {
        P.POLICY_CREATE: admin,
        P.POLICY_WRITE: admin,
        P.POLICY_DROP: admin,
        P.POLICY_READ: admin | {P.POLICY_WRITE},
        P.POLICY_LIST: admin | {P.POLICY_CREATE, P.POLICY_READ, P.POLICY_WRITE},
        full: {_CMM, _CMC},
        P.POLICY_ATTACH: {_CMM, _CMC},
        P.POLICY_DETACH: {_CMM, _CMC},
    }
    for each in P:
        if each.name.endswith(("_ATTACH_POLICY", "_DETACH_POLICY")):
            satisfied[each] = {_CMM, _CMC}
    return satisfied


def _of_catalogs() -> dict[Privilege, set[Privilege]]:
    full = P.CATALOG_FULL_METADATA
    read, write = P.CATALOG_READ_PROPERTIES, P.CATALOG_WRITE_PROPERTIES
    return {
        P.CATALOG_CREATE: {full, _SMA},
        P.CATALOG_DROP: {full, _SMA},
        full: {_SMA},
        P.CATALOG_LIST: {P.CATALOG_CREATE, full, read, write, _CMM, _CMC, _SMA},
        read: {write, full, _CMM, _CMC, _SMA},
        write: {full, _CMM, _CMC, _SMA},
        _CMM: {_CMC},
    }


def _closed() -> dict[Privilege, PrivilegeSet]:
    direct: dict[Privilege, set[Privilege]] = {
        **_by_kind("NAMESPACE"),
        **_by_kind("TABLE"),
        **_by_kind("VIEW"),
        **_table_updates(),
        **_of_realm("PRINCIPAL"),
        **_of_realm("PRINCIPAL_ROLE"),
        **_of_access(),
        **_of_policies(),
        **_of_catalogs(),
        P.TABLE_READ_DATA: {P.TABLE_WRITE_DATA, _CMC},
        P.TABLE_WRITE_DATA: {_CMC},
        P.TABLE_MANAGE_STRUCTURE: {P.TABLE_WRITE_PROPERTIES, P.TABLE_FULL_METADATA, _CMM, _CMC},
        P.PRINCIPAL_RESET_CREDENTIALS: {_SMA},
    }
    return {each: set_of({each, *direct.get(each, ())}) for each in P}


SATISFIED_BY: Final = MappingProxyType(_closed())
"""Per privilege, the set of those that satisfy it: itself and whatever includes it. As Apache Polaris has it;
`PRINCIPAL_ROTATE_CREDENTIALS` is satisfied by nothing else."""


def _words(kind: str, words: str) -> set[Privilege]:
    return {_named(f"{kind}_{word}") for word in words.split()}


def _grantable() -> dict[str, frozenset[Privilege]]:
    held = "DROP LIST READ_PROPERTIES WRITE_PROPERTIES FULL_METADATA"
    updates = {*_FINE_GRAINED, P.TABLE_MANAGE_STRUCTURE}
    data = _words("TABLE", "READ_DATA WRITE_DATA")
    content = {each for kind in ("NAMESPACE", "TABLE", "VIEW") for each in _words(kind, f"CREATE {held}")}
    policies = _words("POLICY", "CREATE WRITE READ DROP LIST FULL_METADATA")
    below = {_CMA, _CMC, _CMM, *content, *data, *policies, *updates}
    of_catalogs = _words("CATALOG", "READ_PROPERTIES WRITE_PROPERTIES ATTACH_POLICY DETACH_POLICY")
    of_tables = data | _words("TABLE", f"{held} ATTACH_POLICY DETACH_POLICY")
    return {
        "catalog": frozenset(below | of_catalogs),
        "namespace": frozenset(below | _words("NAMESPACE", "ATTACH_POLICY DETACH_POLICY")),
        "table": frozenset({_CMA, *of_tables, *updates}),
        "view": frozenset({_CMA, *_words("VIEW", held)}),
        "policy": frozenset({_CMA, *_words("POLICY", "READ DROP WRITE LIST FULL_METADATA ATTACH DETACH")}),
    }


GRANTABLE: Final = MappingProxyType(_grantable())
"""What can be granted on each kind of securable. Everything else is held by built-in roles only."""
