"""Rows from the driver to the gateway: Arrow's messages over a Unix socket, each behind its length.

    schema  batch …  end (length 0)         batches are as Spark wrote them; nothing is decoded here

A maintainer must not break: partitions go out only when Spark has finished them, so that what is tried again
does not arrive twice; a reader that is slow holds Spark back.
"""

import socket
import struct
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cynosure.query.errors import QueryCancelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cynosure.spark.kinds import JobLink

LENGTH: Final = struct.Struct(">Q")
_BETWEEN: Final = "\x00"
_SETTINGS_KEPT: Final = 32


def send_rows(frame: "DataFrame", path: str, link: "JobLink") -> int:
    """Run the query and send what comes; how many batches that was."""
    from pyspark.serializers import NoOpSerializer  # noqa: PLC0415 - an extra
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415
    from pyspark.util import _local_iterator_from_socket  # noqa: PLC0415

    schema = to_arrow_schema(frame.schema)
    count = 0
    with closing(socket.socket(socket.AF_UNIX)) as line:
        line.connect(path)
        _send(line, schema.serialize().to_pybytes())
        _propagate_settings(frame)
        context = frame.sparkSession.sparkContext
        served = context._jvm.PythonRDD.toLocalIteratorAndServe(frame._jdf.toArrowBatchRdd(), True)  # type: ignore[union-attr]
        try:
            for batch in _local_iterator_from_socket(served, NoOpSerializer()):
                if link.is_cancelled:
                    raise QueryCancelled("The statement was ended")
                _send(line, batch)
                count += 1
            _send(line, b"")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise QueryCancelled("Nobody reads the rows any more") from error
    return count


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
