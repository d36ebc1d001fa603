"""Our signatures, held to those of botocore."""

import hashlib
from urllib.parse import quote

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.secrets import Secret
from cynosure.storage.access.s3.keys import S3Session
from cynosure.storage.access.s3.sigv4 import amz_date, authorize, encode_query

TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
PATH = st.lists(TEXT.filter(lambda part: part not in ("", ".", "..")), max_size=3).map("/".join)


@given(
    method=st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD"]),
    path=PATH,
    query=st.dictionaries(TEXT.filter(bool), TEXT, max_size=3),
    extra=st.dictionaries(
        st.sampled_from(["x-amz-meta-a", "content-type", "range", "x-amz-acl"]),
        st.text(alphabet="ab =/-", max_size=6).map(str.strip).map(lambda text: " ".join(text.split())),
    ),
    secret=st.text(alphabet="abc/+=", min_size=1, max_size=40),
    token=st.none() | st.text(alphabet="abc/+=", min_size=1, max_size=40),
    body=st.binary(max_size=20),
    service=st.sampled_from(["s3", "sts"]),
)
def test_a_signature_is_that_of_botocore(method, path, query, extra, secret, token, body, service):
    encoded_path = "/" + quote(path, safe="/-_.~")
    digest = hashlib.sha256(body).hexdigest()
    query_text = encode_query(query.items())
    url = f"https://host.example{encoded_path}" + (f"?{query_text}" if query_text else "")
    request = AWSRequest(method, url, data=body, headers=dict(extra))
    request.context["payload_signing_enabled"] = True
    theirs = (S3SigV4Auth if service == "s3" else SigV4Auth)(
        Credentials("KEY", secret, token), service, "eu-west-1"
    )
    # Its service without the special rules encodes a path once more; S3 and the root do not differ.
    if service == "sts":
        request.url, encoded_path = f"https://host.example/?{query_text}".removesuffix("?"), "/"
    theirs.add_auth(request)

    signed = {name.lower(): value for name, value in request.headers.items() if name != "Authorization"}
    signed = {name: value for name, value in signed.items() if name != "content-length"} | {
        "host": "host.example"
    }
    ours = authorize(
        S3Session("KEY", Secret(secret), None if token is None else Secret(token)),
        method=method,
        path=encoded_path,
        query=query_text,
        signed=signed,
        payload_sha256=digest,
        region="eu-west-1",
        service=service,
    )

    assert ours == request.headers["Authorization"]


def test_a_query_is_ordered_by_what_is_sent():
    assert encode_query([("b", "1"), ("a", "ü/ +"), ("a", "")]) == "a=&a=%C3%BC%2F%20%2B&b=1"
    assert encode_query([]) == ""


def test_a_date_is_in_world_time():
    assert amz_date(1_700_000_000_999_999) == "20231114T221320Z"
