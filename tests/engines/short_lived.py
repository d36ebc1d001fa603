"""The token service of an S3 server, for credentials that live some seconds instead of at least 15 minutes.

It hands requests on without the lifetime that they ask for, so the real service gives what it gives to those
who do not say: as little as `scripts/services` told it.

A maintainer must not break: the credentials are the real service's, and the store really refuses them later.
"""

import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

import boto3
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from cynosure.testing.s3_servers import S3Server


class ShortLived:
    """What was given, and whether the store still takes it."""

    def __init__(self, store: S3Server, url: str) -> None:
        self.url = url
        self.given: list[Credentials] = []
        self._store = store

    def ask(self, form: bytes) -> httpx.Response:
        store = self._store
        body = urlencode([pair for pair in parse_qsl(form.decode()) if pair[0] != "DurationSeconds"])
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        request = AWSRequest("POST", f"{store.endpoint}/", headers, body)
        keys = Credentials(store.access_key_id, store.secret_access_key)
        SigV4Auth(keys, "sts", store.region).add_auth(request)
        answer = httpx.post(request.url, content=body, headers=dict(request.headers), trust_env=False)
        if answer.is_success:
            elements = ET.fromstring(answer.text).iter()
            found = {element.tag.rpartition("}")[2]: element.text or "" for element in elements}
            self.given.append(
                Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])
            )
        return answer

    def is_taken(self, credentials: Credentials) -> bool:
        """Whether the store still knows these credentials, whatever they may do."""
        client: Any = boto3.client(
            "s3",
            endpoint_url=self._store.endpoint,
            region_name=self._store.region,
            aws_access_key_id=credentials.access_key,
            aws_secret_access_key=credentials.secret_key,
            aws_session_token=credentials.token,
        )
        try:
            client.list_objects_v2(Bucket=self._store.bucket)
        except ClientError as refused:
            return refused.response["Error"]["Code"] not in ("InvalidAccessKeyId", "ExpiredToken")
        return True


@contextmanager
def short_lived(store: S3Server) -> Iterator[ShortLived]:
    """A token service before that of this store."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = service.ask(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service = ShortLived(store, f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield service
        server.shutdown()
        thread.join()
