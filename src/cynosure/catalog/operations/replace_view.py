"""Commit changes to a view: check requirements, apply updates, keep the new version.

Must not break: requirements are checked on the state the commit is made on.
"""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.changes import Changes
from cynosure.catalog.claims import changer_of, claim, places_of
from cynosure.catalog.files.export import Export
from cynosure.catalog.files.view_versions import export_view
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.view_state import VIEW, ViewState
from cynosure.catalog.names import Identifier, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import check_reserved
from cynosure.catalog.recalling import RecalledVersion, Version
from cynosure.catalog.resolve import require_open, require_view_ref
from cynosure.iceberg.views import (
    ViewMetadata,
    ViewRequirement,
    ViewUpdate,
    apply_view_updates,
    check_view_requirements,
    parse_view,
)
from cynosure.iceberg.views.updates import RemoveProperties, SetProperties
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail


class ViewChange(Struct, frozen=True):
    """What a client wants changed, and what must be true for it."""

    name: Identifier
    requirements: Sequence[ViewRequirement]
    updates: Sequence[ViewUpdate]


async def replace_view(catalog: OpenCatalog, caller: Caller, change: ViewChange) -> ViewState:
    """Apply a change to a view; when it is as wanted already, nothing is committed."""
    check_reserved_in(change)
    async with Export(catalog) as export:

        async def prepare(view: View) -> Prepared[Version[ViewState]]:
            await require_open(view)
            ref = await require_view_ref(view, change.name)
            (base,) = await view.load_many(VIEW, [ref.id])
            before = parse_view(base.json, limits=catalog.limits)
            check_view_requirements(before, change.requirements)
            after = apply_view_change(catalog, before, change)
            if after is before:
                return Prepared(Version(ref, base))
            held = Held(base.id, base.location, base.claims)
            places = places_of(
                catalog, after.location, after.properties, former=held, field="updates.location"
            )
            claimed = await claim(view, changer_of(catalog, caller, base.id), places, before=held)
            version = await export_view(
                catalog, export, after, entity_id=base.id, base=base, claims=claimed.claims
            )
            key = view_key(change.name)
            changes: Changes = {**claimed.changes, "names": {key: version.value}}
            detail = raw_detail({"id": base.id, "path": (*change.name.namespace, change.name.name)})
            feed = Change(
                kind="view-updated",
                index="names",
                key=key,
                before=ref.pack(),
                after=version.value,
                detail=detail,
            )
            return Prepared(Version(version.ref, version.state), changes, [version.new], [feed])

        target, recall = catalog.view(change.name), RecalledVersion(VIEW)
        state = (await catalog.commit(caller, ops.REPLACE_VIEW, (target,), prepare, recall)).result.value
        export.keep(state.metadata_location)
    return state


def check_reserved_in(change: ViewChange) -> None:
    """Refuse a change that sets or removes properties that are not the client's."""
    for update in change.updates:
        if isinstance(update, SetProperties):
            check_reserved(update.updates, field="updates")
        elif isinstance(update, RemoveProperties):
            check_reserved(update.removals, field="updates")


def apply_view_change(catalog: OpenCatalog, before: ViewMetadata, change: ViewChange) -> ViewMetadata:
    """The view after a change; `before` itself when it is as wanted already."""
    now_ms = catalog.shared.persistence.clock.now_us() // 1000
    return apply_view_updates(before, change.updates, now_ms=now_ms, limits=catalog.limits)
