"""Non-resource paths without a module of their own."""

import httpx


async def test_the_token_issuer_publishes_its_keys(admin: httpx.AsyncClient) -> None:
    assert (await admin.get("/openid/v1/jwks")).json()["keys"][0]["kty"] == "EC"
    document = (await admin.get("/.well-known/openid-configuration")).json()
    assert document["jwks_uri"].endswith("/openid/v1/jwks")
    assert (await admin.get("/openid/v1/nope")).status_code == 404
