"""Rows from the driver to the gateway: Arrow's messages over a Unix socket, each behind its length.

    schema  batch …  end (length 0)         batches are as Spark wrote them; nothing is decoded here

Which partitions run when is for `last_stage.py` to say. The jobs rest on what PySpark has for itself;
`tests/query/spark/test_sending.py` holds a new version to it.

A maintainer must not break: partitions go out only when Spark has finished them, so that what is tried again
does not arrive twice; a reader that is slow holds Spark back.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cynosure.query.errors import QueryCancelled
from cynosure.query.spark.config import MOST_RESULTS, share_for_results
from cynosure.query.spark.failures import is_too_large
from cynosure.query.spark.java_classes import find_class
from cynosure.query.spark.last_stage import LastStage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cynosure.spark.kinds import JobLink

LENGTH: Final = struct.Struct(">Q")
_BETWEEN: Final = "\x00"
_SETTINGS_KEPT: Final = 32


def send_rows(frame: "DataFrame", path: str, link: "JobLink") -> int:
    """Run the query and send what comes; how many batches that was."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - an extra

    schema = to_arrow_schema(frame.schema)
    count = 0
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.connect(path)
        _send(line, schema.serialize().to_pybytes())
        _propagate_settings(frame)
        jobs = _Jobs(frame, link)
        try:
            with closing(LastStage(jobs, jobs.count).batches()) as batches:
                for batch in batches:
                    if link.is_cancelled:
                        raise QueryCancelled("The statement was ended")
                    _send(line, batch)
                    count += 1
            _send(line, b"")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise QueryCancelled("Nobody reads the rows any more") from error
    return count


class _Jobs:
    """See `last_stage.Cluster`."""

    def __init__(self, frame: "DataFrame", link: "JobLink") -> None:
        self._session = frame.sparkSession
        self._java: Any = frame.sparkSession.sparkContext._jsc.sc()
        self._task_id = link.task_id
        self._properties = self._java.getLocalProperties()
        # All stages but the last run here, where Spark plans by what came out of them.
        self._rows: Any = frame._jdf.toArrowBatchRdd().toJavaRDD()
        self.count = int(self._rows.getNumPartitions())

    def enter(self) -> None:
        # Each thread of Python has its own one in Java, which does not know yet whose jobs it begins.
        self._java.setLocalProperties(self._properties.clone())

    def run(self, parts: range) -> "_Served":
        pyspark: Any = self._session.sparkContext._jvm
        return _Served(pyspark.PythonRDD.runJob(self._java, self._rows, list(parts)))

    def is_too_large(self, raised: BaseException) -> bool:
        return is_too_large(raised)

    def count_slots(self) -> int:
        profile = self._java.resourceProfileManager().defaultResourceProfile()
        return int(self._java.maxNumConcurrentTasks(profile))

    def find_most_bytes(self) -> int:
        said = int(self._java.conf().getSizeAsBytes(MOST_RESULTS))
        heap = find_class(self._session, "java.lang.Runtime").getRuntime()
        return said or share_for_results(int(heap.maxMemory()))

    def cancel(self) -> None:
        self._java.cancelJobGroupAndFutureJobs(self._task_id)


class _Served:
    """See `last_stage.Rows`."""

    def __init__(self, served: Any) -> None:
        from pyspark.util import _create_local_socket  # noqa: PLC0415 - an extra

        self._server = served[2]
        # At once: Java does not wait for long.
        self._rows = _create_local_socket(served)

    def __iter__(self) -> Iterator[bytes]:
        from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - an extra

        yield from NoOpSerializer().load_stream(self._rows)  # type: ignore[no-untyped-call]
        # What Java could not send to its end ends, too.
        self._server.getResult()

    def close(self) -> None:
        self._rows.close()


def _propagate_settings(frame: "DataFrame") -> None:
    """Tell tasks the session's settings, as Spark does for its own actions: without, they have defaults."""
    session: Any = frame.sparkSession
    settings = session._jsparkSession.sessionState().conf().getAllConfs()
    context = session.sparkContext
    # All at once: one by one these were a third of what a statement asks of Java.
    told = _to_properties(context._jvm, str(settings.mkString(_BETWEEN)))
    context._jsc.sc().getLocalProperties().putAll(told)


@lru_cache(_SETTINGS_KEPT)
def _to_properties(jvm: Any, settings: str) -> Any:
    """Those of SQL, as a map of Java. Sessions differ in the time zone only."""
    found = jvm.java.util.HashMap()
    for each in settings.split(_BETWEEN):
        name, _, value = each.partition(" -> ")
        if name.startswith("spark.sql."):
            found.put(name, value)
    return found


def _send(line: socket.socket, message: bytes) -> None:
    line.sendall(LENGTH.pack(len(message)))
    if message:
        line.sendall(message)
