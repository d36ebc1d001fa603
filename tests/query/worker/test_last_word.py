"""The last message of a scan arrives, whatever else is on its way."""

import socket
import threading
import time

from cynosure.common.clock import SystemClock
from cynosure.query.broker.certificate import make_tls
from cynosure.query.stream.frames import Assigned, Done, Hello, Probe
from cynosure.query.stream.framing import HEADER_BYTES, decode_length, decode_up, encode_frame
from cynosure.query.worker.stream_client import BrokerPlace, open_stream
from cynosure.testing.small_broker import make_task


def test_a_broker_that_was_busy_still_hears_how_it_ended():
    tls = make_tls(frozenset({"127.0.0.1"}), SystemClock())
    listening = socket.create_server(("127.0.0.1", 0))
    heard: list[object] = []

    def serve() -> None:
        plain, _ = listening.accept()
        with tls.context.wrap_socket(plain, server_side=True) as stream:
            stream.settimeout(30)
            stream.sendall(encode_frame(Assigned(make_task("f0"), 60.0)))
            # Bytes that a scan which is done does not read: hanging up on them would destroy its last word,
            # unless it waits until the broker has read that.
            for number in range(1, 200):
                stream.sendall(encode_frame(Probe(number)))
                time.sleep(0.002)
            data = b""
            while not any(isinstance(each, Done) for each in heard):
                data += stream.recv(65_536)
                while len(data) >= HEADER_BYTES:
                    end = HEADER_BYTES + decode_length(data[:HEADER_BYTES], 65_536)
                    if len(data) < end:
                        break
                    heard.append(decode_up(data[HEADER_BYTES:end]))
                    data = data[end:]

    thread = threading.Thread(target=serve)
    thread.start()
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    hello = Hello("q", "f0", "token", 0, 0, "host/1")
    stream = open_stream(BrokerPlace(address, tls.ca_pem), hello)
    stream.tell_last(Done(1, 2, 3, 4))
    stream.close()
    thread.join()
    listening.close()
    assert heard[-1] == Done(1, 2, 3, 4)


def test_an_address_may_be_of_either_kind():
    assert BrokerPlace("[::1]:8185", "").host_and_port == ("::1", 8185)
    assert BrokerPlace("gateway.internal:8185", "").host_and_port == ("gateway.internal", 8185)
