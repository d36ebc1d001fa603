"""Changes under Idempotency-Keys: which key is sent, how often, what a caller is told in the end (I80)."""

import random
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from cynosure.client.api import ApiClient
from cynosure.client.catalog import CatalogApi
from cynosure.client.changes import Keyed
from cynosure.client.errors import IdempotencyWindowExpired, KeyConflict, StillInProgress
from cynosure.client.generic_tables import GenericTable, GenericTableApi
from cynosure.client.http import HttpClient
from cynosure.client.idempotency import Keys, Replay, check_key, make_key
from cynosure.client.management import Management
from cynosure.client.management_types import Catalog, CatalogRole, Principal, PrincipalRole, make_grant
from cynosure.client.policies import Policy, PolicyApi, PolicyTarget
from cynosure.client.tokens import TOKEN_PATH, ClientCredentials, TokenSource
from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Forbidden,
    KeyReused,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.common.secrets import Secret
from cynosure.idempotency import keys as rules
from tests.client.scripted import HONOURED, Answer, Hands, Scripted, refusal

pytestmark = pytest.mark.anyio

OK = httpx.Response(200, json={"namespace": ["a"], "properties": {"k": "v"}})
REPLAYED = httpx.Response(200, json={"namespace": ["a"]}, headers={"Idempotency-Replayed": "true"})
IN_PROGRESS = refusal(409, "request_in_progress", {"retry-after": "3"})
NO_ANSWERS: list[Answer] = [
    httpx.ReadTimeout,
    httpx.WriteTimeout,
    httpx.ReadError,
    httpx.RemoteProtocolError,
    httpx.ConnectError,
    httpx.Response(500, content=b"oops"),
    httpx.Response(502),
    httpx.Response(503),
    refusal(504, "CommitStateUnknownException"),
    httpx.Response(429),
    IN_PROGRESS,
]


async def create(api: ApiClient, key: str | None = None) -> Any:
    catalog = CatalogApi(api, "lake")
    return await (catalog.with_key(key) if key else catalog).create_namespace(("a",), {"k": "v"})


# --- one key, held ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", NO_ANSWERS, ids=str)
async def test_the_key_is_held_until_there_is_an_answer(fault: Answer) -> None:
    server = Scripted(Hands(), fault, fault, OK)
    with server.client() as api:
        made = await create(api)

    assert made.namespace == ("a",)
    assert len(server.seen) == 3
    [key] = set(server.keys)
    assert uuid.UUID(key).version == 7


@pytest.mark.parametrize("fault", NO_ANSWERS, ids=str)
async def test_every_attempt_is_the_same_request(fault: Answer) -> None:
    server = Scripted(Hands(), fault, OK)
    properties = {"k": "v"}

    def meddle() -> None:
        properties["k"] = "changed while it was on its way"

    server.before = meddle
    with server.client() as api:
        await CatalogApi(api, "lake").create_namespace(("a",), properties)

    first, second = server.seen
    assert (first.method, first.url, first.content) == (second.method, second.url, second.content)
    assert first.content == b'{"namespace":["a"],"properties":{"k":"v"}}'


async def test_another_operation_has_another_key() -> None:
    server = Scripted(Hands(), OK)
    with server.client() as api:
        await create(api)
        await create(api)

    assert len(set(server.keys)) == 2


async def test_reads_carry_no_key() -> None:
    server = Scripted(Hands(), OK)
    with server.client() as api:
        await CatalogApi(api, "lake").load_namespace(("a",))

    assert (server.keys, server.configs) == ([None], [])


async def test_a_question_that_is_posted_carries_no_key() -> None:
    server = Scripted(Hands(), OK)
    with server.client() as api:
        await Management(api).explain_access({}, dict)
        await Management(api).check_storage("lake", dict, timeout_s=1)

    assert (server.keys, server.configs) == ([None, None], [])


async def test_the_pauses_grow_up_to_a_bound_and_are_not_all_alike() -> None:
    clock = Hands()
    server = Scripted(clock, *[httpx.Response(500)] * 12, OK)
    with server.client() as api:
        await create(api)

    assert clock.sleeps[0] <= 0.1
    assert 5.0 <= clock.sleeps[-1] <= 10.0
    assert len(set(clock.sleeps[-4:])) == 4


@pytest.mark.parametrize(
    "fault",
    [IN_PROGRESS, refusal(504, "CommitStateUnknownException", {"retry-after": "3"})],
    ids=["in progress", "commit in progress"],
)
async def test_the_server_says_when_to_come_back(fault: httpx.Response) -> None:
    clock = Hands()
    server = Scripted(clock, fault, OK)
    with server.client() as api:
        await create(api)

    assert clock.sleeps == [3.0]


# --- the end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [httpx.ReadTimeout, httpx.Response(503), IN_PROGRESS], ids=str)
async def test_no_attempt_begins_when_the_server_may_have_forgotten_the_key(fault: Answer) -> None:
    clock = Hands()
    server = Scripted(clock, fault)
    begun: list[float] = []
    server.before = lambda: begun.append(clock.elapsed_s)
    with server.client() as api, pytest.raises(IdempotencyWindowExpired) as caught:
        await create(api)

    assert 1720 < begun[-1] < 1740, "half an hour, without the last minute"
    assert {caught.value.details["idempotency_key"]} == set(server.keys)
    assert caught.value.details["lifetime"] == "30m"
    assert isinstance(caught.value, OutcomeUnknown)


async def test_attempts_that_take_long_use_up_the_window_as_well() -> None:
    clock = Hands()
    server = Scripted(clock, httpx.ReadTimeout)
    server.attempt_s = 60.0
    with server.client() as api, pytest.raises(IdempotencyWindowExpired):
        await create(api)

    assert len(server.seen) < 30


async def test_a_machine_that_slept_counts_by_the_clock_on_the_wall() -> None:
    clock = Hands()
    server = Scripted(clock, httpx.ReadTimeout, OK)

    def sleep() -> None:
        clock.stepped_s = 3 * 3600.0

    server.before = sleep
    with server.client() as api, pytest.raises(IdempotencyWindowExpired):
        await create(api)

    assert len(server.seen) == 1


async def test_a_clock_that_is_set_back_does_not_lengthen_the_window() -> None:
    clock = Hands()
    server = Scripted(clock, httpx.ReadTimeout)
    clock_set_back = iter([-3600.0])
    server.before = lambda: setattr(clock, "stepped_s", next(clock_set_back, clock.stepped_s))
    with server.client() as api, pytest.raises(IdempotencyWindowExpired):
        await create(api)

    assert clock.elapsed_s < 1740


async def test_a_short_lifetime_leaves_a_tenth_for_the_last_attempt() -> None:
    clock = Hands()
    server = Scripted(clock, httpx.ReadTimeout, config=HONOURED.replace(b"PT30M", b"PT10S"))
    with server.client() as api, pytest.raises(IdempotencyWindowExpired):
        await create(api)

    assert 4.0 < clock.elapsed_s < 9.0


async def test_impatience_ends_sooner_and_hands_the_key_over() -> None:
    clock = Hands()
    server = Scripted(clock, httpx.ReadTimeout)
    with server.client(Keys(patience_s=120.0)) as api, pytest.raises(OutcomeUnknown) as caught:
        await create(api)

    assert clock.elapsed_s < 120.0
    assert not isinstance(caught.value, IdempotencyWindowExpired)
    assert {caught.value.details["idempotency_key"]} == set(server.keys)


async def test_impatience_with_a_server_that_did_nothing_is_no_unknown_outcome() -> None:
    server = Scripted(Hands(), httpx.Response(503))
    with server.client(Keys(patience_s=5.0)) as api, pytest.raises(Unavailable):
        await create(api)


async def test_a_wait_beyond_the_end_is_not_begun() -> None:
    clock = Hands()
    server = Scripted(clock, refusal(409, "request_in_progress", {"retry-after": "600"}))
    with server.client(Keys(patience_s=120.0)) as api, pytest.raises(OutcomeUnknown):
        await create(api)

    assert clock.sleeps == []


async def test_a_person_is_told_at_once_that_nobody_is_there() -> None:
    server = Scripted(Hands(), httpx.ConnectError)
    with server.client(is_patient=False) as api, pytest.raises(Unavailable, match="cannot be reached"):
        await create(api)

    assert len(server.seen) == 1


async def test_a_server_that_restarts_in_the_middle_is_waited_for_by_a_person_too() -> None:
    server = Scripted(Hands(), httpx.ReadError, httpx.ConnectError, httpx.ConnectError, OK)
    with server.client(is_patient=False) as api:
        await create(api)

    assert (len(server.seen), len(set(server.keys))) == (4, 1)


# --- answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("faults", [[], [httpx.ReadTimeout]], ids=["at once", "after a lost answer"])
async def test_a_refusal_is_the_answer(faults: list[Answer]) -> None:
    server = Scripted(Hands(), *faults, refusal(409, "AlreadyExistsException"), OK)
    with server.client() as api, pytest.raises(AlreadyExists):
        await create(api)

    assert len(server.seen) == len(faults) + 1


async def test_a_key_of_another_request_is_an_error_of_its_own() -> None:
    server = Scripted(Hands(), refusal(422, "idempotency_key_conflict"))
    with server.client() as api, pytest.raises(KeyConflict, match="Said the server") as caught:
        await create(api, "mine")

    assert isinstance(caught.value, KeyReused)
    assert caught.value.details["status"] == 422
    assert len(server.seen) == 1


async def test_rights_that_are_gone_say_nothing_about_the_attempt_before() -> None:
    server = Scripted(Hands(), httpx.ReadTimeout, refusal(403, "ForbiddenException"))
    with server.client() as api, pytest.raises(OutcomeUnknown) as caught:
        await create(api)

    assert isinstance(caught.value.__cause__, Forbidden)
    assert caught.value.details["idempotency_key"] == server.keys[0]


async def test_rights_that_were_never_there_are_the_answer() -> None:
    server = Scripted(Hands(), refusal(403, "ForbiddenException"))
    with server.client() as api, pytest.raises(Forbidden):
        await create(api)


async def test_a_token_that_expires_between_attempts_is_renewed_under_the_same_key() -> None:
    clock = Hands()
    expired = refusal(401, "NotAuthorizedException")
    server = Scripted(clock, httpx.ReadTimeout, expired, httpx.ReadTimeout, expired, OK)
    issued: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == TOKEN_PATH:
            issued.append(f"t{len(issued)}")
            return httpx.Response(200, json={"access_token": issued[-1], "expires_in": 3600})
        return await server.handle_async_request(request)

    http = HttpClient("http://test", clock=clock, rng=random.Random(1), transport=httpx.MockTransport(answer))
    async with http:
        tokens = TokenSource(http, ClientCredentials("alice", Secret("s")), clock, headers={})
        await create(ApiClient(http, tokens=tokens))

    assert len(set(server.keys)) == 1
    sent = [each.headers["authorization"] for each in server.seen]
    assert sent == ["Bearer t0", "Bearer t0", "Bearer t1", "Bearer t1", "Bearer t2"]


async def test_a_token_that_comes_too_late_is_not_used_for_another_attempt() -> None:
    clock = Hands()
    server = Scripted(clock, httpx.ReadTimeout, refusal(401, "NotAuthorizedException"), OK)
    issued: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == TOKEN_PATH:
            clock.elapsed_s += 1_800.0 * len(issued)
            issued.append(f"t{len(issued)}")
            return httpx.Response(200, json={"access_token": issued[-1], "expires_in": 3600})
        return await server.handle_async_request(request)

    http = HttpClient("http://test", clock=clock, rng=random.Random(1), transport=httpx.MockTransport(answer))
    async with http:
        tokens = TokenSource(http, ClientCredentials("alice", Secret("s")), clock, headers={})
        with pytest.raises(IdempotencyWindowExpired):
            await create(ApiClient(http, tokens=tokens))

    assert len(server.seen) == 2


async def test_a_replayed_answer_can_be_told_from_a_first_one() -> None:
    replays: list[Replay] = []
    server = Scripted(Hands(), OK, REPLAYED)
    with server.client(Keys(on_replay=replays.append)) as api:
        await create(api, "mine")
        await create(api, "mine")

    assert replays == [Replay("POST", "/api/catalog/v1/lake/namespaces", "mine")]


async def test_a_replayed_refusal_says_so() -> None:
    replays: list[Replay] = []
    server = Scripted(Hands(), refusal(409, "AlreadyExistsException", {"idempotency-replayed": "true"}))
    with server.client(Keys(on_replay=replays.append)) as api, pytest.raises(AlreadyExists) as caught:
        await create(api, "mine")

    assert caught.value.details["is_replayed"] is True
    assert [each.key for each in replays] == ["mine"]


# --- keys of callers ----------------------------------------------------------------------------------


async def test_a_key_of_the_caller_is_sent_and_held() -> None:
    server = Scripted(Hands(), httpx.ReadTimeout, OK)
    with server.client() as api:
        await create(api, "order-17.retry_1")

    assert server.keys == ["order-17.retry_1"] * 2


async def test_a_key_is_for_those_who_ask_with_it_only() -> None:
    server = Scripted(Hands(), OK)
    with server.client() as api:
        catalog = CatalogApi(api, "lake")
        await catalog.with_key("mine").drop_namespace(("a",))
        await catalog.drop_namespace(("a",))

    assert server.keys[0] == "mine" != server.keys[1]


BAD_KEYS = ["", "-a", ".a", "_a", "a b", "a/b", "a\n", "é", "a" * 256, "a\r\nX-Evil: 1"]
GOOD_KEYS = ["a", "0", "A-b_c.9", "a" * 255, make_key(0)]


@pytest.mark.parametrize("key", BAD_KEYS)
async def test_a_bad_key_is_refused_before_anything_is_sent(key: str) -> None:
    server = Scripted(Hands(), OK)
    with server.client() as api, pytest.raises(BadInput):
        CatalogApi(api, "lake").with_key(key)

    assert (server.seen, server.configs) == ([], [])


@pytest.mark.parametrize("key", [*BAD_KEYS, *GOOD_KEYS])
def test_client_and_server_have_the_same_rule(key: str) -> None:
    def refuses(check: Callable[[], object]) -> bool:
        try:
            check()
        except BadInput:
            return True
        return False

    assert refuses(lambda: check_key(key)) == refuses(lambda: rules.check_key([key.encode()]))


def test_keys_are_uuids_of_version_7_in_the_order_of_time() -> None:
    made = [uuid.UUID(make_key(ms * 1000)) for ms in range(1_800_000_000_000, 1_800_000_000_500)]

    assert made == sorted(made)
    assert {(each.version, each.variant) for each in made} == {(7, uuid.RFC_4122)}
    assert made[0].int >> 80 == 1_800_000_000_000
    assert len({each.int & (1 << 62) - 1 for each in made}) == len(made)


# --- servers that promise nothing ---------------------------------------------------------------------

LOST: list[Answer] = [httpx.ReadTimeout, httpx.ReadError, *map(httpx.Response, (500, 502, 504))]
UNSUPPORTED = [
    b"{}",
    b'{"properties": {"idempotency-key-supported": "false"}}',
    b'{"properties": {"idempotency-key-supported": "true", "idempotency-key-lifetime": "soon"}}',
]


@pytest.mark.parametrize("config", UNSUPPORTED)
@pytest.mark.parametrize("fault", LOST, ids=str)
async def test_without_a_promise_nothing_that_may_be_applied_is_sent_again(
    config: bytes, fault: Answer
) -> None:
    server = Scripted(Hands(), fault, OK, config=config)
    with server.client() as api, pytest.raises(OutcomeUnknown):
        await create(api)

    assert server.keys == [None]


@pytest.mark.parametrize("key", [None, "mine"])
@pytest.mark.parametrize("fault", LOST, ids=str)
async def test_without_a_promise_not_even_a_put_is_sent_again(fault: Answer, key: str | None) -> None:
    server = Scripted(Hands(), fault, OK, config=b"{}")
    with server.client() as api:
        management = Management(api).with_key(key) if key else Management(api)
        with pytest.raises(OutcomeUnknown):
            await management.assign_principal_role("ann", "reader")

    assert server.keys == [key]


async def test_without_a_promise_a_key_of_the_caller_is_sent_once_and_the_caller_told() -> None:
    told: list[str] = []
    server = Scripted(Hands(), httpx.ReadTimeout, OK, config=b"{}")
    keys = Keys(on_unsupported=lambda: told.append("unsupported"))
    with server.client(keys) as api, pytest.raises(OutcomeUnknown):
        await create(api, "mine")

    assert server.keys == ["mine"]
    assert told == ["unsupported"]


async def test_without_a_promise_a_request_in_progress_is_not_waited_for() -> None:
    server = Scripted(Hands(), IN_PROGRESS, OK, config=b"{}")
    with server.client() as api, pytest.raises(StillInProgress):
        await create(api, "mine")

    assert len(server.seen) == 1


async def test_a_client_without_automatic_keys_asks_nothing_and_sends_what_is_given() -> None:
    server = Scripted(Hands(), OK)
    with server.client(Keys(is_automatic=False)) as api:
        await create(api)
        await create(api, "mine")

    assert (server.keys, server.configs) == ([None, "mine"], [])


# --- every call ---------------------------------------------------------------------------------------

Call = tuple[type[Keyed], str, tuple[Any, ...], dict[str, Any]]
GRANT = make_grant("catalog", "TABLE_LIST", (), "")
CALLS: list[Call] = [
    (Management, "create_catalog", ({},), {}),
    (Management, "update_catalog", (Catalog("c", {}),), {"properties": {}}),
    (Management, "delete_catalog", ("c",), {}),
    (Management, "create_principal", ("p", {}), {}),
    (Management, "update_principal", (Principal("p"), {}), {}),
    (Management, "delete_principal", ("p",), {}),
    (Management, "rotate_credentials", ("p",), {}),
    (Management, "reset_credentials", ("p",), {}),
    (Management, "trust_service", ("p",), {"is_trusted": True}),
    (Management, "assign_principal_role", ("p", "r"), {}),
    (Management, "revoke_principal_role", ("p", "r"), {}),
    (Management, "create_principal_role", ("r", {}), {}),
    (Management, "update_principal_role", (PrincipalRole("r"), {}), {}),
    (Management, "delete_principal_role", ("r",), {}),
    (Management, "assign_catalog_role", ("r", "c", "x"), {}),
    (Management, "revoke_catalog_role", ("r", "c", "x"), {}),
    (Management, "create_catalog_role", ("c", "x", {}), {}),
    (Management, "update_catalog_role", ("c", CatalogRole("x"), {}), {}),
    (Management, "delete_catalog_role", ("c", "x"), {}),
    (Management, "grant", ("c", "x", GRANT), {}),
    (Management, "revoke", ("c", "x", GRANT), {}),
    (CatalogApi, "create_namespace", (("a",), {}), {}),
    (CatalogApi, "update_namespace", (("a",),), {"updates": {}}),
    (CatalogApi, "drop_namespace", (("a",),), {}),
    (CatalogApi, "drop_table", (("a",), "t"), {}),
    (CatalogApi, "drop_view", (("a",), "v"), {}),
    (GenericTableApi, "create", (("a",), GenericTable(name="g", format="delta")), {}),
    (GenericTableApi, "drop", (("a",), "g"), {}),
    (PolicyApi, "create", (("a",), Policy(name="p", policy_type="t")), {}),
    (PolicyApi, "update", (("a",), "p"), {}),
    (PolicyApi, "drop", (("a",), "p"), {}),
    (PolicyApi, "attach", (("a",), "p", PolicyTarget("catalog"), {}), {}),
    (PolicyApi, "detach", (("a",), "p", PolicyTarget("catalog")), {}),
]
READS = (
    "list",
    "walk",
    "load",
    "explain",
    "check",
    "whoami",
    "read_events",
    "with_key",
    "reconcile",
    "migrate",
)


@pytest.mark.parametrize(("kind", "name", "given", "named"), CALLS)
async def test_every_change_carries_the_key_that_it_is_given(
    kind: type[Keyed], name: str, given: tuple[Any, ...], named: dict[str, Any]
) -> None:
    # A refusal, because the answers of all these have many shapes.
    server = Scripted(Hands(), httpx.ReadTimeout, refusal(409, "AlreadyExistsException"))
    with server.client() as api:
        target = kind(api) if kind is Management else kind(api, "lake")
        with pytest.raises(AlreadyExists):
            await getattr(target.with_key("mine"), name)(*given, **named)

    assert server.keys == ["mine", "mine"]


async def test_what_is_sent_once_carries_the_key_that_it_is_given() -> None:
    server = Scripted(Hands(), httpx.ReadTimeout)
    with server.client() as api, pytest.raises(OutcomeUnknown):
        await CatalogApi(api, "lake").with_key("mine").purge_table_once(("a",), "t")

    assert server.keys == ["mine"]


def test_no_change_is_left_out_above() -> None:
    public = {
        (kind, name)
        for kind in {kind for kind, *_ in CALLS}
        for name in dir(kind)
        if not name.startswith(("_", *READS))
    }

    assert {(kind, name) for kind, name, *_ in CALLS} == public - {(CatalogApi, "purge_table_once")}
