"""Canaille, an OpenID provider, with one user, one group and one client: `serve.py PORT < SECRETS`.

Runs until its input ends. The secrets are the client's and the user's, one per line.
"""

import sys
import threading
from datetime import UTC, datetime

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from werkzeug.serving import make_server


def main() -> None:
    port = int(sys.argv[1])
    secret, password = sys.stdin.readline().strip(), sys.stdin.readline().strip()
    app = create_app(
        {
            "SECRET_KEY": secret,
            "SERVER_NAME": f"127.0.0.1:{port}",
            "PREFERRED_URL_SCHEME": "http",
            "CANAILLE": {"DATABASE": "memory"},
            "CANAILLE_OIDC": {},
        }
    )
    with app.app_context():
        backend = Backend.instance
        user = models.User(
            user_name="ann",
            formatted_name="Ann",
            family_name="Analyst",
            emails=["ann@corp.example"],
            password=password,
        )
        backend.save(user)
        backend.save(models.Group(display_name="lake-analyst", members=[user]))
        client = models.Client(
            client_id="lake",
            client_name="lake",
            client_secret=secret,
            client_id_issued_at=datetime.now(UTC),
            grant_types=["password"],
            response_types=["code"],
            scope=["openid", "profile", "email", "groups"],
            redirect_uris=["http://127.0.0.1/unused"],
            token_endpoint_auth_method="client_secret_post",
            id_token_signed_response_alg="RS256",
        )
        backend.save(client)
        client.audience = [client]
        backend.save(client)
    server = make_server("127.0.0.1", port, app, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


main()
