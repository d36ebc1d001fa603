"""Starting, watching and stopping the server, and asking it who one is."""

import base64
import os
import sys

from cynosure.testing.catalog_server import make_client
from cynosure.testing.harness.probes import log_ready
from cynosure.testing.login import find_root
from tests.engines.java import SHORT_LIVED
from tour.stage import CYNOSURE, Tour

SOON = "CYNOSURE_DELEGATION__MAINTENANCE__INTERVAL"
SOON_S = 5
"""How often policies are looked at: nobody wants to watch a minute go by."""


async def start_everything(tour: Tour) -> None:
    """Start everything on this machine; it prints root's credentials, once"""
    tour.say(f"$ {SOON}={SOON_S}s cynosure up --data DATA --port {tour.port} &")
    tour.server = await tour.processes.start(
        "cynosure",
        [CYNOSURE, "up", "--data", str(tour.data), "--port", str(tour.port)],
        env={SOON: f"{SOON_S}s", **find_spark()},
        ready=log_ready("Everything is ready"),
        timeout_s=60,
    )
    root = find_root(tour.data)
    assert root is not None
    tour.know("root", root.client_id, root.secret)
    log = [line for line in tour.server.log().splitlines() if not line.startswith("{")]
    tour.say("\n".join(log))
    if tour.server.log().count(root.secret) != 1:
        sys.exit("demo: root's secret was not printed once")
    await tour.cynosure("status")


def find_spark() -> dict[str, str]:
    """What the delegation service's Spark needs of its environment, in a life as short as this one."""
    given = os.environ.get("CYNOSURE_SPARK_JARS")
    jars = {"CYNOSURE_DELEGATION__SERVICE__SPARK__JARS": given} if given else {}
    return {"JDK_JAVA_OPTIONS": " ".join(SHORT_LIVED), **jars}


async def watch_it(tour: Tour) -> None:
    """Watch it: health for load balancers, metrics for Prometheus"""
    await tour.get("/health/ready")
    await tour.get("/metrics", only="cynosure_")


async def ask_who_is_asking(tour: Tour) -> None:
    """Nobody is served who does not say who they are"""
    async with make_client(None, base_url=tour.url) as stranger:
        answer = await stranger.get("/api/catalog/v1/config?warehouse=main")
    tour.show_answer("a stranger", answer)
    if answer.status_code != 401:
        sys.exit("demo: a stranger was served")
    root = tour.users["root"].credential
    tour.say(f"$ curl {tour.url}/api/catalog/v1/oauth/tokens -d grant_type=client_credentials …")
    head, claims, _ = tour.users["root"].token().split(".")
    tour.say(f"a token, signed with {decode(head)}")
    tour.say(f"that says {decode(claims)}")
    env = {"CYNOSURE_CLIENT_ID": root.client_id, "CYNOSURE_CLIENT_SECRET": root.secret}
    await tour.cynosure("whoami", "--url", tour.url, env=env)


def decode(part: str) -> str:
    """A part of a token."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()


async def stop_everything(tour: Tour) -> None:
    """Stop it: requests in work are finished first"""
    assert tour.server is not None
    tour.say(f"$ kill -TERM {tour.server.pid}")
    code = await tour.server.stop(timeout_s=60)
    tour.say(f"ended with {code}")
    if code:
        sys.exit(f"demo: the server ended with {code}\n{tour.server.log_tail()}")
