"""Who may do what: CPU of a check and of a grant, in small and large estates.

In process, on SQLite, so every check pays for two reads of heads. An estate `TABLESxGRANTS` has so many
tables and so many grants of other roles; the caller has the same few in each. One operation is:

- *check* whether the caller may load one of ten tables: held on the catalog, where no name is looked up, or
  on the table itself, so that the way to it is walked
- *first check*: the same with nothing remembered of rights, as after any grant
- *authenticate and check*: as a request does it, token first
- *visible*: what a filtered list asks, nothing remembered
- *grant* or revoke one privilege on a table, durably
- *head reads*: the part of a check that is not about rights

    ./dev bench access --set estates=10x10,1000000x10,10x100000 --set directory=SOMEWHERE      (kept there)

A maintainer must not break: every estate is asked about as many tables by callers with as many grants.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.access_estate import BY_CATALOG, BY_TABLE, WRITTEN, Estate, open_estate
from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, cpu_us, has, median
from benchmarks.results_file import Result
from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.revoke_privilege import revoke_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.persistence.references import DEFAULT_REALM, catalog_reference, realm_reference
from cynosure.testing.small_catalog import ROOT

Once = Callable[[int], Awaitable[object]]
CHECKS = {
    "check, held on the catalog": 1.3,
    "check, held on the table": 1.3,
    "first check, held on the table": 1.3,
    "authenticate and check": 1.3,
    "visible": 1.5,
    "grant": 1.5,
    "head reads": 1.3,
}
"""What may be measured, and how much more it may cost in a large estate."""


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    sizes = options.get("estates", "10x10,1000000x10,10x100000").split(",")
    directory = options.get("directory", "")
    checks, grants = options.get("checks", 2_000), options.get("grants", 100)
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for size in sizes:
            tables, _, granted = size.partition("x")
            estate = await stack.enter_async_context(open_estate(int(tables), int(granted), directory))
            for name, once in (await _operations(estate)).items():
                count = grants if name == "grant" else checks
                candidates[f"{name}, {size}"] = _measuring(once, count)
        yield candidates


async def _operations(estate: Estate) -> dict[str, Once]:
    catalog, standings = estate.catalog, estate.identities.standings
    persistence = catalog.shared.persistence
    targets = [(each,) for each in estate.targets()]
    view = await catalog.read()
    authorizer = InternalAuthorizer(persistence, standings)
    _, by_catalog = await estate.log_in(BY_CATALOG)
    token, by_table = await estate.log_in(BY_TABLE)
    authenticator = estate.tokens.authenticator

    async def check_on_catalog(number: int) -> None:
        decision = await authorizer.decide(by_catalog, ops.LOAD_TABLE, targets[number % len(targets)], view)
        assert decision.is_allowed

    async def check_on_table(number: int) -> None:
        decision = await authorizer.decide(by_table, ops.LOAD_TABLE, targets[number % len(targets)], view)
        assert decision.is_allowed

    async def check_first(number: int) -> None:
        fresh = InternalAuthorizer(persistence, standings)
        decision = await fresh.decide(by_table, ops.LOAD_TABLE, targets[number % len(targets)], view)
        assert decision.is_allowed

    async def authenticate(number: int) -> None:
        caller = await authenticator.authenticate(token, DEFAULT_REALM)
        decision = await authorizer.decide(caller, ops.LOAD_TABLE, targets[number % len(targets)], view)
        assert decision.is_allowed

    async def see(number: int) -> None:
        fresh = InternalAuthorizer(persistence, standings)
        visible = await fresh.visible(by_table, catalog.entity.id, Privilege.TABLE_LIST)
        assert len(visible.ids) == len(targets)

    async def grant(number: int) -> None:
        table = estate.tables[number // 2 % len(estate.tables)]
        change = revoke_privilege if number % 2 else grant_privilege
        privilege = Privilege.TABLE_WRITE_DATA
        wanted = Grant(kind="table", privilege=privilege, namespace=table.namespace, name=table.name)
        await change(catalog, ROOT, WRITTEN, wanted)

    heads = [realm_reference(DEFAULT_REALM, "principals")]
    heads.append(catalog_reference(DEFAULT_REALM, catalog.entity.id, "grants"))

    async def read_heads(number: int) -> None:
        for key in heads:
            await persistence.heads.load(key)

    once = (check_on_catalog, check_on_table, check_first, authenticate, see, grant, read_heads)
    return dict(zip(CHECKS, once, strict=True))


def _measuring(once: Once, count: int) -> Round:
    async def run(meter: Meter) -> None:
        for number in range(min(count, 20)):
            await once(number)
        with meter.measuring():
            for number in range(count):
                await once(number)
        meter.count(operations=count)

    return run


def promises(result: Result) -> list[Promise]:
    """That it hardly matters how large the estate is, be it in tables or in grants."""
    estates = sorted({tuple(map(int, name.rpartition(", ")[2].split("x"))) for name in result.candidates})
    found: list[Promise] = []
    small = estates[0]
    for large in estates[1:]:
        for name, bound in CHECKS.items():
            before, after = (f"{name}, {tables}x{grants}" for tables, grants in (small, large))
            if has(result, before, after):
                growth = median(result, after, cpu_us) / median(result, before, cpu_us)
                more, less = (f"{tables:,} tables, {grants:,} grants" for tables, grants in (large, small))
                found.append(Promise(f"{name}: CPU with {more} over {less}", "≤", bound, growth))
    return found
