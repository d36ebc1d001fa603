"""Which policies count for a catalog, a namespace or a table."""

from collections.abc import Sequence

from msgspec import Struct, structs

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import OPERATIONS
from cynosure.catalog.listing import choose_size
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.applicable import Applicable, choose_applicable
from cynosure.catalog.policies.attached import load_attached
from cynosure.catalog.policy_types import POLICY_TYPES, get_policy_type, is_restriction
from cynosure.catalog.seeing import find_permission
from cynosure.catalog.targets import AnyTableTarget, CatalogTarget, NamespaceTarget
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import State
from cynosure.persistence.index import encode_key
from cynosure.persistence.listing import Paging, list_page


class ApplicablePage(Struct, frozen=True):
    """Policies, and how to go on."""

    policies: Sequence[Applicable]
    next_token: str | None = None


Place = CatalogTarget | NamespaceTarget | AnyTableTarget


def place_of(catalog: OpenCatalog, namespace: Namespace, name: str | None) -> Place:
    """What is asked about: the catalog without a namespace, a namespace without a name."""
    if name is not None:
        if not namespace:
            raise BadInput("A table is in a namespace", field="namespace", fix="Name it, too.")
        return catalog.any_table(Identifier(namespace, name))
    return catalog.namespace(namespace) if namespace else catalog.target()


async def list_applicable_policies(
    catalog: OpenCatalog, caller: Caller, place: Place, paging: Paging, *, policy_type: str = ""
) -> ApplicablePage:
    """Those that count there, outermost first; of one type where it is named.

    What a restriction says is shown to those who may read the policy, and that it is there to all. `NotFound`
    for a place that is not there, `BadInput` for a type that is not known.
    """
    if policy_type:
        get_policy_type(policy_type, field="policyType")

    async def choose(state: State) -> list[Applicable]:
        await catalog.authorize(state, caller, OPERATIONS[f"list-policies-of-{place.kind}"], place)
        if not isinstance(place, CatalogTarget):
            # Neither a right that is held further out nor a catalog without attachments has it looked for.
            await place.locate(state)
        found = choose_applicable(await load_attached(state, place), POLICY_TYPES, depth=_depth_of(place))
        wanted = [each for each in found if policy_type in ("", each.attached.policy.type)]
        return [await _shown(catalog, caller, state, each) for each in wanted]

    if paging.token is None and paging.size is None:
        return ApplicablePage(await choose(await catalog.read()))
    chosen: list[Applicable] = []

    async def scan(state: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        # On the state of the first page, so that the same places hold the same policies.
        chosen.extend(await choose(state))
        keys = [b"%08d" % number for number in range(len(chosen))]
        return [(key, b"") for key in keys if key >= start][:limit]

    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index="mappings",
        prefix=encode_key(place.kind, policy_type, *_path_of(place)),
        size=choose_size(catalog, paging),
        token=paging.token or None,
        scan=scan,
    )
    return ApplicablePage([chosen[int(key)] for key, _ in page.entries], page.next_token)


async def _shown(catalog: OpenCatalog, caller: Caller, state: State, found: Applicable) -> Applicable:
    attached = found.attached
    if not is_restriction(attached.policy.type):
        return found
    shared = catalog.shared
    target = catalog.policy(attached.path)
    may_read = await find_permission(
        shared.authorizer,
        caller,
        ops.LOAD_POLICY,
        (target,),
        state,
        is_hiding=catalog.is_hiding,
    )
    if may_read is not None:
        return found
    silent = structs.replace(attached.policy, content=None, description=None)
    return structs.replace(found, attached=structs.replace(attached, policy=silent))


def _depth_of(place: Place) -> int:
    return len(_path_of(place))


def _path_of(place: Place) -> tuple[str, ...]:
    match place:
        case CatalogTarget():
            return ()
        case NamespaceTarget(path=path):
            return path
        case AnyTableTarget(path=path):
            return (*path.namespace, path.name)
