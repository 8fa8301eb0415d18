"""Client assertions: the signed JWT by which an app shows that it holds a certificate's key."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509 import load_pem_x509_certificate

if TYPE_CHECKING:
    from collections.abc import Iterable


class AssertionRefusedError(Exception):
    """The assertion proves nothing; the message says why."""


def check_assertion(assertion: str, client_id: str, endpoint: str, certificates: Iterable[str]) -> None:
    """Hold an assertion against an app's certificates (PEM). RS256 and PS256. Raises AssertionRefusedError."""
    signed, _, signature = assertion.rpartition(".")
    head, _, body = signed.partition(".")
    try:
        header, claims, proof = json.loads(_bytes(head)), json.loads(_bytes(body)), _bytes(signature)
    except ValueError:
        raise AssertionRefusedError("It is no JWT.") from None
    _check_claims(claims, client_id, endpoint)
    if header.get("alg") not in {"RS256", "PS256"}:
        raise AssertionRefusedError(f"Its algorithm {header.get('alg')} is not supported.")
    if not any(_fits(pem, header["alg"], proof, signed.encode()) for pem in certificates):
        raise AssertionRefusedError("No certificate of the app fits its signature.")


def _check_claims(claims: dict[str, Any], client_id: str, endpoint: str) -> None:
    if claims.get("iss") != client_id or claims.get("sub") != client_id:
        raise AssertionRefusedError("Its issuer or subject is not the client id.")
    if claims.get("aud") != endpoint:
        raise AssertionRefusedError("Its audience is not this token endpoint.")
    if not isinstance(claims.get("exp"), (int, float)) or claims["exp"] <= time.time():
        raise AssertionRefusedError("It has expired.")


def _fits(pem: str, algorithm: str, proof: bytes, signed: bytes) -> bool:
    key = load_pem_x509_certificate(pem.encode()).public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        return False
    scheme = (
        padding.PKCS1v15() if algorithm == "RS256" else padding.PSS(padding.MGF1(SHA256()), SHA256.digest_size)
    )
    try:
        key.verify(proof, signed, scheme, SHA256())
    except InvalidSignature:
        return False
    return True


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
