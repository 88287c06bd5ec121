"""A small OIDC provider over HTTPS on a free port: discovery document, key set, ID tokens signed with real keys, and
log-in by authorization code with PKCE, where everybody is `jane` and agrees at once.

It runs in a thread, so that an API server in another thread or process can call it. While `hold` is cleared it accepts
requests without responding; `is_broken` makes it respond with 503.
"""

import base64
import contextlib
import hashlib
import http.server
import json
import secrets
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from federation.apiserver.auth.pki import ensure_pki


class Issuer:
    """Signs with the newest key; older keys are published until they are removed from `keys`."""

    def __init__(self, url: str, ca_file: Path) -> None:
        self.url = url
        self.ca_file = ca_file
        self.keys: dict[str, Any] = {}
        self.asked: list[str] = []
        self.is_broken = False
        self.claims: dict[str, Any] = {}
        """Added to the ID tokens of log-ins, or in the place of theirs."""
        self.client_secret = ""
        self.codes: dict[str, dict[str, str]] = {}
        """Requests for authorization by the code that was issued; a code works once."""
        self.hold = threading.Event()
        self.hold.set()
        self.rotate("first")

    def rotate(self, key_id: str, *, is_rsa: bool = False) -> None:
        """Create a key and use it for new tokens."""
        self.keys[key_id] = rsa.generate_private_key(65537, 2048) if is_rsa else ec.generate_private_key(ec.SECP256R1())

    def token(self, key: Any = None, key_id: str | None = None, **claims: Any) -> str:
        """Return an ID token for the client `federation` and the subject `jane`, valid for an hour."""
        newest = list(self.keys)[-1]
        key, key_id = key or self.keys[newest], newest if key_id is None else key_id
        now = int(time.time())
        defaults = {"iss": self.url, "aud": "federation", "sub": "jane", "iat": now, "exp": now + 3600}
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        payload = {name: value for name, value in (defaults | claims).items() if value is not None}
        return jwt.encode(payload, key, algorithm=algorithm, headers={"kid": key_id} if key_id else {})

    def answer(self, path: str) -> dict[str, Any] | None:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
            }
        if path != "/keys":
            return None
        published = []
        for key_id, key in self.keys.items():
            kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
            published.append(json.loads(kind.to_jwk(key.public_key())) | {"kid": key_id, "use": "sig"})
        return {"keys": [{"kty": "oct", "kid": "symmetric", "k": "AAAA"}, {"kty": "EC"}, *published]}

    def authorize(self, query: str) -> str:
        """Return where the browser goes on after the log-in of `jane`."""
        request = dict(parse_qsl(query))
        code = secrets.token_urlsafe(8)
        self.codes[code] = request
        answer = urlencode({"code": code, "state": request["state"], "iss": self.url})
        return f"{request['redirect_uri']}?{answer}"

    def redeem(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        """Return the tokens for a code, or an error."""
        request = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        known = base64.b64encode(f"federation:{quote(self.client_secret, safe='')}".encode()).decode()
        if self.client_secret and authorization != f"Basic {known}":
            return {"error": "invalid_client"}
        if request is None or challenge != request["code_challenge"] or form["redirect_uri"] != request["redirect_uri"]:
            return {"error": "invalid_grant", "error_description": "the code is not valid"}
        return {"token_type": "Bearer", "id_token": self.token(**{"nonce": request["nonce"], **self.claims})}


@contextmanager
def an_issuer(directory: Path) -> Iterator[Issuer]:
    """Run an issuer while the context is open."""
    pki = ensure_pki(directory / "issuer", now=datetime.now(UTC))
    held: dict[str, Issuer] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            issuer = held["issuer"]
            issuer.asked.append(self.path)
            issuer.hold.wait()
            path, _, query = self.path.partition("?")
            if path == "/authorize":
                self.send_response(302)
                self.send_header("location", issuer.authorize(query))
                self.send_header("content-length", "0")
                self.end_headers()
                return
            self._respond(None if issuer.is_broken else issuer.answer(path))

        def do_POST(self) -> None:
            issuer = held["issuer"]
            issuer.asked.append(self.path)
            form = dict(parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
            self._respond(issuer.redeem(form, self.headers.get("authorization", "")))

        def _respond(self, found: dict[str, Any] | None) -> None:
            body = json.dumps(found or {}).encode()
            self.send_response(503 if held["issuer"].is_broken else 404 if found is None else 200)
            self.send_header("content-length", str(len(body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as in the base class
            pass

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # the caller may go away
                super().handle()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.serving.certificate, pki.serving.key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    issuer = held["issuer"] = Issuer(f"https://127.0.0.1:{server.server_address[1]}", pki.ca_certificate)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        issuer.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()
