"""Idempotency-Key: an answer is lost, the server dies, and the same request again has the same answer."""

import json
import sys
from uuid import uuid4

import httpx

from cynosure.testing.catalog_server import make_client
from cynosure.testing.harness.fault_proxy import FaultProxy
from tour.stage import Tour

PRINCIPALS = "/api/management/v1/principals"
REPLAYED = "Idempotency-Replayed"


async def lose_an_answer(tour: Tour) -> None:
    """Lose an answer, kill the server, and ask again with the same key"""
    key, body = {"Idempotency-Key": str(uuid4())}, {"principal": {"name": "bob"}}
    tour.say(f"$ curl {tour.url}{PRINCIPALS} -H 'Idempotency-Key: KEY' -d '{json.dumps(body)}' …")
    async with FaultProxy.to_url(tour.url) as network:
        network.lose_answer_after(lambda request: request.path == PRINCIPALS)
        async with make_client(tour.users["root"], base_url=network.url) as client:
            try:
                await client.post(PRINCIPALS, json=body, headers=key)
                sys.exit("demo: the answer was not lost")
            except httpx.TransportError:
                tour.say("no answer: was bob made, and with which secret?")
    await tour.cut_power()
    async with tour.client() as client:
        again = [await client.post(PRINCIPALS, json=body, headers=key) for _ in range(2)]
        other = await client.post(PRINCIPALS, json={"principal": {"name": "rob"}}, headers=key)
    for answer in (*again, other):
        tour.show_answer("root", answer)
        tour.say(f"{REPLAYED}: {answer.headers.get(REPLAYED, 'no')}")
    if any(answer.status_code != 201 or REPLAYED not in answer.headers for answer in again):
        sys.exit("demo: a repeated request was not given the first answer")
    if again[0].content != again[1].content or other.status_code != 422:
        sys.exit("demo: a key stands for more than one request")
    made = again[0].json()["credentials"]
    tour.know("bob", made["clientId"], made["clientSecret"])
    # The command fails, and the tour with it, if the secret that was told again is not bob's.
    env = {"CYNOSURE_CLIENT_ID": made["clientId"], "CYNOSURE_CLIENT_SECRET": made["clientSecret"]}
    await tour.cynosure("whoami", "--url", tour.url, env=env)
