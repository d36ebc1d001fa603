"""Every operation that commits, to be asked for twice, and what others do to its entity in between."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from cynosure.auth.caller import Caller
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.generic.load_generic_table import LoadedGenericTable
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.view_state import ViewState
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreatedTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.detach_policy import detach_policy
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.operations.notify import Notification, notify
from cynosure.catalog.operations.replace_view import ViewChange, replace_view
from cynosure.catalog.operations.report_metrics import report_metrics
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    update_namespace_properties,
)
from cynosure.catalog.operations.update_policy import PolicyUpdate, update_policy
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_view
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.access_cases import CASES, MOVED, NEW, SCAN, VIEW_SET, Case, table
from tests.catalog.external import UUID, as_external, write_metadata
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.generic_cases import GENERIC_CASES, G, told
from tests.catalog.policies.made import CATALOG, ENABLED, NAMESPACE, TABLE, create, policy
from tests.catalog.policy_cases import POLICY_CASES, a_policy, on_policy
from tests.catalog.tables import T, change, make, properties
from tests.catalog.upkeep_cases import UPKEEP_CASES
from tests.catalog.world import NS, OTHER, VERSION, Lake, V

Later = Callable[[Lake], Awaitable[object]]


class Row(NamedTuple):
    """An operation, and what others do to what it was about after it."""

    case: Case
    later: Later


def _update(namespace: tuple[str, ...]) -> Later:
    wanted = PropertiesUpdate(updates={"later": "yes"})
    return lambda w: update_namespace_properties(w.catalog, ROOT, namespace, wanted)


def _change(name: Identifier) -> Later:
    return lambda w: change(w.catalog, properties(later="yes"), table=name)


def _drop(name: Identifier) -> Later:
    return lambda w: drop_table(w.catalog, ROOT, name)


def _make_again(w: Lake) -> Awaitable[object]:
    # Elsewhere: the place of the one that was dropped is kept for it.
    return make(w.catalog, T, location=f"{w.catalog.base.text}/again")


def _attach(to: Any) -> Later:
    return lambda w: attach_policy(w.catalog, ROOT, policy("p"), to, {"later": "yes"})


def _detach(to: Any) -> Later:
    return lambda w: detach_policy(w.catalog, ROOT, policy("p"), to)


def _say_again(w: Lake) -> Awaitable[object]:
    return update_policy(w.catalog, ROOT, policy("p"), PolicyUpdate(description="later"))


def _replace(name: Identifier) -> Later:
    return lambda w: replace_view(w.catalog, ROOT, ViewChange(name, [], VIEW_SET))


async def _tell_later(w: Lake) -> None:
    file = await write_metadata(w.catalog, "v2")
    await notify(as_external(w.catalog), ROOT, NEW, Notification("UPDATE", "new", 2, UUID, file))


async def _told_before(w: Lake) -> Notification:
    await notify(as_external(w.catalog), ROOT, NEW, await told(w))
    return Notification("DROP", "new", 2, UUID, "")


async def _tell_after_drop(w: Lake) -> None:
    file = await write_metadata(w.catalog, "v3")
    await notify(as_external(w.catalog), ROOT, NEW, Notification("CREATE", "new", 3, UUID, file))


def _stage(w: Lake, who: Caller, _: Any) -> Awaitable[CreatedTable]:
    catalog = vending(w.catalog, MemoryVendor())
    return create_table(catalog, who, table("new", is_staged=True), delegation=ANY_WAY)


MORE = [
    Case("stage table with access", _stage, on_namespace(NS, P.TABLE_CREATE, P.TABLE_WRITE_DATA)),
    Case(
        "replace view with what it is",
        lambda w, who, _: replace_view(w.catalog, who, ViewChange(V, [], [])),
        on_view(V, P.VIEW_WRITE_PROPERTIES),
    ),
    Case(
        "update policy to what it says",
        lambda w, who, _: update_policy(w.catalog, who, policy("p"), PolicyUpdate(ENABLED)),
        on_policy(P.POLICY_WRITE),
        a_policy,
    ),
    Case(
        "notify of a drop",
        lambda w, who, told: notify(as_external(w.catalog), who, NEW, told),
        on_catalog(
            P.TABLE_CREATE, P.TABLE_WRITE_PROPERTIES, P.TABLE_DROP, P.NAMESPACE_CREATE, P.NAMESPACE_DROP
        ),
        _told_before,
    ),
]

LATER: dict[str, Later] = {
    "create top": _update(("x",)),
    "create below": lambda w: drop_namespace(w.catalog, ROOT, (*NS, "x")),
    "drop namespace": lambda w: create_namespace(w.catalog, ROOT, OTHER, {"later": "yes"}),
    "update namespace": _update(NS),
    "create table": _change(NEW),
    "create table delegated": _drop(NEW),
    "stage table with access": lambda w: make(w.catalog, NEW),
    "commit staged": _change(NEW),
    "register": _change(T),
    "register to write": _drop(T),
    "register to read": _change(T),
    "register over nothing": _change(T),
    "register over a table": _change(T),
    "register over a table to write": _drop(T),
    "commit properties": _change(T),
    "commit two kinds": _drop(T),
    "commit nothing": _change(T),
    "append files": _change(T),
    "add columns": _change(T),
    "set partitioning": _drop(T),
    "set sort order": _change(T),
    "transaction": _change(T),
    "creation in transaction": _drop(NEW),
    "drop table": _make_again,
    "purge table": _make_again,
    "unregister": _make_again,
    "rename table": _drop(MOVED),
    "report scan": lambda w: report_metrics(w.catalog, ROOT, T, SCAN),
    "report commit": _drop(T),
    "order maintenance": _drop(T),
    "create view": _replace(NEW),
    "register view": _replace(V),
    "replace view": lambda w: drop_view(w.catalog, ROOT, V),
    "drop view": lambda w: create_view(
        w.catalog, ROOT, CreateView(V, SCHEMA, VERSION, location=f"{w.catalog.base.text}/again")
    ),
    "replace view with what it is": _replace(V),
    "rename view": _replace(MOVED),
    "restore": _change(T),
    "begin purging": lambda w: make(w.catalog, T),
    "create generic table": lambda w: drop_generic_table(w.catalog, ROOT, NEW),
    "create generic table delegated": lambda w: drop_generic_table(w.catalog, ROOT, NEW),
    "drop generic table": lambda w: make(w.catalog, G),
    "notify": _tell_later,
    "notify of a drop": _tell_after_drop,
    "create policy": _say_again,
    "update policy": _say_again,
    "update policy to what it says": _say_again,
    "drop policy": lambda w: create(w.catalog, "p"),
    "attach policy to the catalog": _detach(CATALOG),
    "attach policy to a namespace": _attach(NAMESPACE),
    "attach policy to a table": lambda w: drop_policy(w.catalog, ROOT, policy("p"), is_detaching=True),
    "detach policy from the catalog": _attach(CATALOG),
    "detach policy from a namespace": _attach(NAMESPACE),
    "detach policy from a table": _attach(TABLE),
}

ROWS = [
    Row(case, LATER[case.name])
    for case in (*CASES, *GENERIC_CASES, *POLICY_CASES, *UPKEEP_CASES, *MORE)
    if case.name in LATER
]


def told_as_bytes(result: object) -> bytes:
    """A result, as far as its caller is told it. Credentials are made anew each time."""
    match result:
        case CreatedTable(answer=answer, state=state):
            return told_as_bytes(answer) + msgspec.msgpack.encode(state)
        case TableAnswer():
            return answer_bytes(result)
        case ViewState():
            return result.load_body() + msgspec.msgpack.encode(result)
        case LoadedGenericTable(entity=entity):
            return msgspec.msgpack.encode(entity)
    return msgspec.msgpack.encode(result)


def answer_bytes(answer: TableAnswer) -> bytes:
    return answer.commit_body() + (answer.etag or b"")
