"""The suite of credentials runs, tiny, and says which promises it judges; not how fast."""

import asyncio

from benchmarks.measure import Options
from benchmarks.runner import run_suite
from benchmarks.suites import vending

from cynosure.testing.s3_servers import S3Server


def test_the_vending_suite_counts_one_request_for_a_crowd(sts_server: S3Server) -> None:
    options = Options({"loads": "3", "new": "1", "server": sts_server.name})

    result = asyncio.run(run_suite("vending", options, rounds=1, warmups=0))

    assert set(result.candidates) == {vending.LOAD, vending.CACHED, vending.NEW, vending.TOGETHER}
    cached, crowd = vending.promises(result)
    assert "on top of a load" in cached.figure
    assert crowd.measured == 1
