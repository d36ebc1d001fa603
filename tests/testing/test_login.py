"""A login asks for one token, gives it to all its requests, and says when it gets none."""

import httpx
import pytest

from cynosure.testing.login import Login, LoginRefused, make_credential


def serve(tokens: list[str], lifetime_s: int = 3600) -> httpx.MockTransport:
    """A server that hands out these tokens, one after the other, and then none."""
    left = iter(tokens)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/catalog/v1/oauth/tokens":
            token = next(left, None)
            if token is None:
                return httpx.Response(401, json={"error": "unauthorized_client"})
            return httpx.Response(200, json={"access_token": token, "expires_in": lifetime_s})
        return httpx.Response(200, json={name: request.headers.get(name) for name in WATCHED})

    return httpx.MockTransport(answer)


WATCHED = ("authorization", "polaris-realm")


def test_one_token_serves_all_requests():
    login = Login("http://test", make_credential(), realm="acme")

    with httpx.Client(transport=serve(["one", "two"]), auth=login) as client:
        told = [client.get("http://test/x").json() for _ in range(3)]

    assert told == [{"authorization": "Bearer one", "polaris-realm": "acme"}] * 3


def test_a_token_that_has_lived_its_life_is_renewed():
    login = Login("http://test", make_credential())

    with httpx.Client(transport=serve(["one", "two"], lifetime_s=0), auth=login) as client:
        told = [client.get("http://test/x").json()["authorization"] for _ in range(2)]

    assert told == ["Bearer one", "Bearer two"]


def test_a_refused_login_is_told_without_the_secret():
    credential = make_credential()

    with (
        httpx.Client(transport=serve([]), auth=Login("http://test", credential)) as client,
        pytest.raises(LoginRefused, match="401") as refused,
    ):
        client.get("http://test/x")

    assert credential.secret not in str(refused.value)
    assert credential.secret not in repr(credential)
