"""Looking at the effect of a request, through the API.

Must not break: a probe would see it if the effect were missing, or there twice.
"""

from collections.abc import Callable
from typing import Any

import httpx

from cynosure.testing.admin import read_credential
from cynosure.testing.crash_matrix.world import Probe
from cynosure.testing.login import TOKENS


def shows(path: str, status: int = 200, **wanted: Any) -> Probe:
    """A resource is there, and its answer has these fields (`a__b` is the field b in a)."""

    async def probe(http: httpx.AsyncClient, _: httpx.Response) -> str:
        found = await http.get(path)
        if found.status_code != status:
            return f"GET {path}: {found.status_code}, not {status}"
        for name, value in wanted.items():
            there: Any = found.json()
            for part in name.split("__"):
                there = there.get(part.replace("_", "-"), there.get(part))
            if there != value:
                return f"GET {path}: {name} is {there!r}, not {value!r}"
        return ""

    return probe


def lists(path: str, field: str, wanted: Callable[[list[Any]], bool]) -> Probe:
    """A list has what it should have."""

    async def probe(http: httpx.AsyncClient, _: httpx.Response) -> str:
        found = (await http.get(path)).json()[field]
        return "" if wanted(found) else f"GET {path}: {found}"

    return probe


def is_gone(path: str) -> Probe:
    """A resource is not there any more."""
    return shows(path, 404)


def like_answered(path: str) -> Probe:
    """A resource is what the answer says that it is."""

    async def probe(http: httpx.AsyncClient, answer: httpx.Response) -> str:
        found = (await http.get(path)).json()
        told = answer.json()
        fields = ("metadata-location", "metadata", "policy", "table")
        differs = [each for each in fields if found.get(each) != told.get(each)]
        return f"GET {path}: another {differs}" if differs else ""

    return probe


async def opens_the_door(http: httpx.AsyncClient, answer: httpx.Response) -> str:
    """The credentials in an answer are good."""
    credential = read_credential(answer.json())
    form = {
        "grant_type": "client_credentials",
        "client_id": credential.client_id,
        "client_secret": credential.secret,
        "scope": "PRINCIPAL_ROLE:ALL",
    }
    asked = await http.post(TOKENS, data=form, auth=httpx.Auth())
    return "" if asked.status_code == 200 else f"the secret is no good: {asked.status_code}"


def all_of(*probes: Probe) -> Probe:
    """What is wrong with any of them."""

    async def probe(http: httpx.AsyncClient, answer: httpx.Response) -> str:
        return "; ".join([wrong for each in probes if (wrong := await each(http, answer))])

    return probe
