import importlib
import json
import pkgutil

import pytest

import cynosure
from cynosure.api import errors
from cynosure.api.errors import ANSWERS, AS_ANCESTOR, get_answer, to_response
from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.client.errors import to_error
from cynosure.common import errors as tree
from cynosure.idempotency.errors import CommitInProgress, RequestInProgress


def _import_everything() -> None:
    for module in pkgutil.walk_packages(cynosure.__path__, "cynosure."):
        # Kits and harness may raise what never reaches HTTP.
        if module.name.startswith("cynosure.testing"):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            # Fine for a driver of an extra that is not installed here, and for nothing else.
            if (error.name or "").startswith("cynosure"):
                raise


def _walk(error_type: type[tree.CynosureError]) -> list[type[tree.CynosureError]]:
    return [error_type, *(found for child in error_type.__subclasses__() for found in _walk(child))]


def test_every_type_of_the_error_tree_has_its_answer() -> None:
    _import_everything()

    ours = [found for found in _walk(tree.CynosureError) if found.__module__.startswith("cynosure.")]
    ours = [found for found in ours if not found.__module__.startswith("cynosure.testing")]
    names = {found: f"{found.__module__}.{found.__name__}" for found in ours}
    unmapped = [name for found, name in names.items() if found not in ANSWERS and name not in AS_ANCESTOR]

    assert unmapped == [], "add these to ANSWERS in api/errors.py, or to AS_ANCESTOR on purpose"
    assert set(names.values()) >= AS_ANCESTOR, "AS_ANCESTOR names what does not exist"


def test_only_what_certainly_applied_nothing_invites_a_retry() -> None:
    inviting = {found for found, answer in ANSWERS.items() if answer.status in (429, 503)}

    assert inviting == {found for found in ANSWERS if issubclass(found, tree.Unavailable)}
    # These two only say that an earlier attempt with the same key is at work: the key makes it safe.
    in_progress = {RequestInProgress, CommitInProgress}
    assert {found for found, answer in ANSWERS.items() if answer.retry_after_s} == inviting | in_progress


def test_a_commit_in_progress_is_no_conflict() -> None:
    assert get_answer(RequestInProgress).status == 409
    assert get_answer(CommitInProgress)[:2] == get_answer(tree.OutcomeUnknown)[:2]


def test_an_unknown_outcome_is_never_a_conflict_nor_a_retry() -> None:
    assert get_answer(tree.OutcomeUnknown) == errors.Answer(504, "CommitStateUnknownException")


@pytest.mark.parametrize(
    "error",
    [
        tree.BadInput("Wrong", field="a.b", fix="Do it right."),
        tree.TooLarge("Wrong", field="a.b", fix="Do it right."),
        tree.Expired("Old", fix="Start again."),
        tree.NotFound("None"),
        tree.AlreadyExists("There"),
        tree.Conflict("Changed"),
        tree.Unavailable("Down"),
        tree.OutcomeUnknown("Perhaps"),
    ],
)
def test_what_the_server_says_the_client_understands(error: tree.CynosureError) -> None:
    response = to_response(error, "r1")

    understood = to_error(response.status, response.body, is_read=False, request_id="r1")

    assert type(understood) is type(error)
    assert error.message in str(understood)


def test_the_envelope_names_cause_field_and_fix() -> None:
    response = to_response(tree.BadInput("A name is empty", field="name", fix="Give a name."), "r1")

    assert json.loads(response.body) == {
        "error": {
            "message": "A name is empty (field='name'). Give a name.",
            "type": "BadRequestException",
            "code": 400,
        }
    }


def test_unavailable_says_when_to_come_back() -> None:
    response = to_response(tree.Unavailable("The database does not answer", host="db.internal"), "r1")

    assert (b"retry-after", b"1") in response.headers
    assert b"db.internal" not in response.body


@pytest.mark.anyio
async def test_an_unexpected_exception_leaks_nothing_but_the_request_id(client_for, caplog) -> None:
    async def fail(request: Request) -> Response:
        raise RuntimeError("password=hunter2")

    client = client_for(Route("GET", "/", fail, operation_id="fail"))

    answer = await client.get("/", headers={"x-request-id": "abc-1"})

    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert "RuntimeError" not in answer.text
    assert "abc-1" in answer.json()["error"]["message"]
    assert any(record.message == "request.crashed" for record in caplog.records)


@pytest.mark.anyio
async def test_an_answer_that_breaks_half_way_is_cut_not_completed(client_for) -> None:
    async def stream():
        yield b"half"
        raise tree.Unavailable("The database went away")

    async def serve(request: Request) -> Response:
        return Response(200, chunks=stream())

    client = client_for(Route("GET", "/", serve, operation_id="serve"))

    with pytest.raises(tree.Unavailable):
        await client.get("/")
