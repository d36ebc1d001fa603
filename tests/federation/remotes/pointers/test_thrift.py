"""Our Thrift against Apache's own, and against servers that lie."""

import struct
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hive_metastore.ThriftHiveMetastore import get_table_req_args, get_table_req_result
from hive_metastore.ttypes import FieldSchema, GetTableRequest, GetTableResult, StorageDescriptor, Table
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TTransport import TMemoryBuffer

from cynosure.federation.remotes.hive.records import is_iceberg, make_table, point_to, read_pointer
from cynosure.federation.remotes.hive.thrift import (
    BOOL,
    BYTE,
    DOUBLE,
    INT16,
    INT32,
    INT64,
    LIST,
    MAP,
    SET,
    STRING,
    STRUCT,
    BadThrift,
    Decoder,
    Pairs,
    Reply,
    Value,
    Values,
    encode_call,
    text,
)
from cynosure.testing.pointer_kit import COLUMNS, place

pytestmark = pytest.mark.anyio

HEAD = struct.pack("!Ii", 0x80010002, 4) + b"load" + struct.pack("!i", 7)


async def decode(data: bytes, *, limit_bytes: int = 1_000_000, piece: int = 5) -> Reply:
    """An answer that comes in small pieces."""
    left = bytearray(data)

    async def read(count: int) -> bytes:
        if not left:
            raise ConnectionResetError
        part = bytes(left[: min(piece, count)])
        del left[: len(part)]
        return part

    return await Decoder(read, limit_bytes=limit_bytes).read_reply()


def as_reply(name: str, number: int, fields: dict[int, Value]) -> bytes:
    """An answer, made of a request: they differ in one byte."""
    data = bytearray(encode_call(name, number, fields))
    data[3] = 2
    return bytes(data)


def encode_with_apache(result: Any, name: str, kind: int = TMessageType.REPLY) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(name, kind, 7)
    result.write(protocol)
    protocol.writeMessageEnd()
    return bytes(buffer.getvalue())


# --- against Apache's own ------------------------------------------------------------------------


async def test_what_apaches_server_sends_is_read():
    table = Table(
        tableName="orders",
        dbName="sales",
        createTime=-5,
        sd=StorageDescriptor(cols=[FieldSchema("id", "bigint", "é")], location="s3://b/t", compressed=True),
        parameters={"table_type": "iceberg", "metadata_location": "s3://b/t/1.json"},
        writeId=2**40,
    )
    sent = encode_with_apache(get_table_req_result(success=GetTableResult(table=table)), "get_table_req")

    reply = await decode(sent)

    record = reply.fields[0].value[1].value
    assert (reply.name, reply.number, reply.is_failure) == ("get_table_req", 7, False)
    assert is_iceberg(record)
    assert read_pointer(record).metadata_location == "s3://b/t/1.json"
    assert read_pointer(record).location == "s3://b/t"
    assert (record[4].value, record[19].value) == (-5, 2**40)


def test_what_we_send_is_read_by_apaches_server():
    request = {1: text("sales"), 2: text("ördërs")}
    sent = encode_call("get_table_req", 9, {1: Value(STRUCT, request)})

    protocol = TBinaryProtocol(TMemoryBuffer(sent))
    name, kind, number = protocol.readMessageBegin()
    arguments = get_table_req_args()
    arguments.read(protocol)

    assert (name, kind, number) == ("get_table_req", TMessageType.CALL, 9)
    assert arguments.req == GetTableRequest(dbName="sales", tblName="ördërs")


def test_a_table_that_we_make_is_one_for_apaches_client():
    pointer = place("first")
    made = make_table("sales", "orders", pointer, COLUMNS, now_s=100)
    sent = encode_call("x", 1, made)
    protocol = TBinaryProtocol(TMemoryBuffer(sent))
    protocol.readMessageBegin()
    table = Table()
    table.read(protocol)

    assert (table.dbName, table.tableName, table.tableType) == ("sales", "orders", "EXTERNAL_TABLE")
    assert table.parameters["metadata_location"] == pointer.metadata_location
    assert table.sd.location == pointer.location
    assert {each.name: each.type for each in table.sd.cols} == COLUMNS


async def test_fields_that_nobody_knows_come_back_as_they_were():
    unknown = Value(STRUCT, {1: text("kept"), 900: Value(SET, Values(INT64, [1, -2]))})
    record = {**make_table("sales", "orders", place("first"), COLUMNS, now_s=1), 999: unknown}
    received = (await decode(as_reply("load", 1, record))).fields

    sent = (await decode(as_reply("load", 1, point_to(received, place("second"), COLUMNS)))).fields

    assert sent[999] == unknown


# --- any value -----------------------------------------------------------------------------------

NUMBERS = {BYTE: 8, INT16: 16, INT32: 32, INT64: 64}
plain = st.one_of(
    st.tuples(st.just(BOOL), st.booleans()),
    st.sampled_from(sorted(NUMBERS)).flatmap(
        lambda kind: st.tuples(
            st.just(kind), st.integers(-(2 ** (NUMBERS[kind] - 1)), 2 ** (NUMBERS[kind] - 1) - 1)
        )
    ),
    st.tuples(st.just(DOUBLE), st.floats(allow_nan=False)),
    st.tuples(st.just(STRING), st.text()),
).map(lambda pair: Value(*pair))


def nest(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    alike = inner.flatmap(lambda one: st.tuples(st.just(one), st.integers(0, 3)))
    lists = st.tuples(st.sampled_from([LIST, SET]), alike).map(
        lambda pair: Value(pair[0], Values(pair[1][0].type, [pair[1][0].value] * pair[1][1]))
    )
    maps = st.tuples(alike, inner).map(
        lambda pair: Value(
            MAP,
            Pairs(pair[0][0].type, pair[1].type, [(pair[0][0].value, pair[1].value)] * pair[0][1]),
        )
    )
    structs = st.dictionaries(st.integers(-(2**15), 2**15 - 1), inner, max_size=4).map(
        lambda fields: Value(STRUCT, fields)
    )
    return st.one_of(lists, maps, structs)


@given(
    st.dictionaries(st.integers(0, 100), st.recursive(plain, nest, max_leaves=8), max_size=4),
    st.integers(1, 70_000),
)
async def test_any_value_comes_back_however_it_is_cut(fields: dict[int, Value], piece: int):
    reply = await decode(as_reply("load", 3, fields), piece=piece)

    assert reply == Reply("load", 3, fields, is_failure=False)


# --- servers that lie ----------------------------------------------------------------------------

LIES = {
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a request": b"\x80\x01\x00\x01" + HEAD[4:] + b"\x00",
    "a long name": struct.pack("!Ii", 0x80010002, 2**30),
    "a long string": HEAD + struct.pack("!bhi", STRING, 0, 2**31 - 1),
    "a string of negative length": HEAD + struct.pack("!bhi", STRING, 0, -1),
    "a long list": HEAD + struct.pack("!bhbi", LIST, 0, STRUCT, 2**31 - 1),
    "a list of negative length": HEAD + struct.pack("!bhbi", LIST, 0, STRUCT, -1),
    "a long map": HEAD + struct.pack("!bhbbi", MAP, 0, STRING, STRING, 2**31 - 1),
    "no type": HEAD + struct.pack("!bh", 77, 0),
    "depth": HEAD + struct.pack("!bh", STRUCT, 0) * 1_000,
    "many structs of a byte": HEAD + struct.pack("!bhbi", LIST, 0, STRUCT, 500_000) + b"\0" * 500_001,
    "nested lists": HEAD + struct.pack("!bh", LIST, 0) + struct.pack("!bi", LIST, 1) * 1_000,
    "a long answer": HEAD + (struct.pack("!bhi", STRING, 0, 600) + b"x" * 600) * 3_000,
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_found_out(lie: str):
    with pytest.raises(BadThrift):
        await decode(LIES[lie], piece=1_000)


MANY = 1_000_000
SMALL = {
    "structs": struct.pack("!bi", STRUCT, MANY) + b"\0" * MANY,
    "structs of a field": struct.pack("!bi", STRUCT, 2**14) + struct.pack("!bh?x", BOOL, 300, True) * 2**14,
    "structs of a struct": struct.pack("!bi", STRUCT, 2**14) + struct.pack("!bhxx", STRUCT, 300) * 2**14,
    "numbers": struct.pack("!bi", BYTE, MANY) + b"\x80" * MANY,
    "lists": struct.pack("!bi", LIST, 2**14) + struct.pack("!bi", LIST, 0) * 2**14,
    "maps": struct.pack("!bi", MAP, 2**14) + struct.pack("!bbi", MAP, MAP, 0) * 2**14,
    "texts": struct.pack("!bi", STRING, 2**14) + struct.pack("!i2s", 2, b"xy") * 2**14,
}
"""Much that takes few bytes on the wire, in a list."""


@pytest.mark.parametrize("kind", SMALL)
async def test_an_answer_takes_no_more_memory_than_allowed_however_small_its_values_are(kind: str):
    limit_bytes = 2**20
    sent = HEAD + struct.pack("!bh", LIST, 0) + SMALL[kind] + b"\0"
    tracemalloc.start()
    try:
        with suppress(BadThrift):
            await decode(sent, limit_bytes=limit_bytes, piece=65_536)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # The copy of what was sent is the test's.
    assert peak - len(sent) < 4 * limit_bytes


async def test_an_answer_that_ends_early_is_none():
    with pytest.raises(ConnectionResetError):
        await decode(HEAD + struct.pack("!bhi", STRING, 0, 10) + b"short")
