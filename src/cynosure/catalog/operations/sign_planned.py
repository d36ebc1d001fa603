"""Sign a client's request to the object store, if it reads one file of a plan.

Must not break: rights, restrictions and locations are those of now for every single request, as in
`sign_request.py`; the plan only takes away.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_access.giving import subject_of
from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.planning.opening import open_table
from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.content_file_json import BoundForm
from cynosure.storage.access.ports import Signed, StoreRequest
from cynosure.storage.location import is_allowed


async def sign_planned(
    catalog: OpenCatalog, caller: Caller, table: Identifier, plan_id: str, request: StoreRequest
) -> Signed:
    """The request with a signature of the catalog's storage.

    `LocationRefused` for one that does anything but read a file of the plan.
    """
    opened = await open_table(catalog, caller, table)
    # This is what gives data: whoever is restricted and no trusted engine is refused here.
    await catalog.authorize(opened.view, caller, ops.LOAD_TABLE_TO_READ, opened.target)
    stored_id = opened.names.open_id(plan_id)
    plan = await opened.load_plan(stored_id, plan_id)
    signer = catalog.storage.signer
    if signer is None:
        raise BadInput(
            "Requests to this catalog's storage are not signed",
            field="provider",
            fix="Ask for vended credentials, or use your own.",
        )
    inspected = signer.inspect(request)
    reached = inspected.reached
    scope = table_scope(catalog, opened.current.state, is_writable=False)
    _, _, planner = await opened.open_planner(plan, plan_id, BoundForm.TYPED)
    for location in (*reached.locations, *reached.sources):
        is_planned = reached.action == "read" and is_allowed(location, scope.locations)
        if not is_planned or not await planner.has(location):
            raise LocationRefused(
                "The request does not read a file of the plan",
                fix="Read only files of this plan, or have requests signed for the whole table.",
                field="uri",
                location=location.text,
            )
    return await inspected.sign(scope, subject_of(catalog, caller, table))
