"""The claims of a service account token: whose it is, and when it expires.

Kubernetes' tokens are JWTs. The claims are read without verification: the member verifies its own tokens, and a wrong
claim only changes when the control plane requests the next token. `controllers/cluster/tokenrenewal.py` renews tokens.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

_SUBJECT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class AccountToken:
    """The claims of one token. `expires` is None for the token of a Secret, which does not expire."""

    namespace: str
    account: str
    issued: datetime | None = None
    expires: datetime | None = None

    @property
    def renewal(self) -> datetime | None:
        """The time after a third of the token's life, from which it should be renewed; None if it does not expire.

        Two thirds remain for a control plane or a member that is down.
        """
        if self.expires is None:
            return None
        issued = self.issued if self.issued is not None else self.expires - timedelta(hours=1)
        return issued + (self.expires - issued) / 3


def parse_account_token(token: str) -> AccountToken | None:
    """Return the claims of a service account token, None for anything else."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        subject = claims["sub"]
        if not subject.startswith(_SUBJECT):
            return None
        namespace, _, account = subject.removeprefix(_SUBJECT).partition(":")
        return AccountToken(namespace, account, _to_time(claims.get("iat")), _to_time(claims.get("exp")))
    except (binascii.Error, ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError):
        return None


def _to_time(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None
