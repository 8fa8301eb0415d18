"""Why a sign-in or a request to an environment failed, in words of ours, for whoever runs the app. Pure.

What the libraries say is not repeated: it may hold addresses, ids of traces, parts of a request. Their errors
are known here by the sign-in service's number and the system's words, so that no library is loaded for this.
Numbers: https://learn.microsoft.com/entra/identity-platform/reference-error-codes
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.errors import ConnectionsError, ServiceError, SettingsError


class Kind(StrEnum):
    """What has to be looked at."""

    SETTING = "setting"
    SECRET = "secret"  # noqa: S105 - what is wrong
    SIGN_IN = "sign_in"
    URL = "url"
    TLS = "tls"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Reason:
    kind: Kind
    text: str


_AADSTS: Final = re.compile(r"AADSTS(\d{4,8})\b")
_NUMBERS: Final = {
    "7000215": Reason(
        Kind.SECRET, "the client secret is wrong (the setting must hold the secret's value, not its id)"
    ),
    "7000222": Reason(Kind.SECRET, "the client secret has expired"),
    "700027": Reason(Kind.SECRET, "the certificate is not registered with the app, or has expired"),
    "700016": Reason(Kind.SIGN_IN, "the tenant has no app with this clientId"),
    "7000229": Reason(Kind.SIGN_IN, "the app has no service principal in the tenant"),
    "7000112": Reason(Kind.SIGN_IN, "the app is disabled"),
    "90002": Reason(Kind.SIGN_IN, "there is no tenant with this tenantId"),
    "900023": Reason(Kind.SIGN_IN, "tenantId is neither a tenant's id nor its domain"),
    "53003": Reason(Kind.SIGN_IN, "a Conditional Access policy forbids it"),
    "500011": Reason(Kind.URL, "the tenant knows no environment with this url"),
}
_TLS: Final = re.compile(
    r"CERTIFICATE_VERIFY_FAILED|SSLError|SSL: |TLSV1_|certificate verify failed", re.IGNORECASE
)
_UNKNOWN_HOST: Final = re.compile(
    r"Name or service not known|getaddrinfo failed|nodename nor servname|No address associated|"
    r"Temporary failure in name resolution|NameResolutionError"
)
_CLOSED: Final = re.compile(r"Connection refused|Errno 111|Errno 61|actively refused")
_TIMES_OUT: Final = re.compile(r"ConnectTimeout|ReadTimeout|timed out|time was up", re.IGNORECASE)
_LOST: Final = re.compile(
    r"ServiceRequestError|ServiceResponseError|ConnectError|ReadError|RemoteProtocolError|"
    r"cannot be reached|did not answer"
)
_CERTIFICATE: Final = re.compile(
    r"PKCS12|PEM|could not deserialize key|[Ii]ncorrect password|[Bb]ad decrypt|must include its private key|"
    r"[Pp]assword was not given"
)


def reason_of(error: BaseException) -> Reason:
    """The most telling reason in an error and what it came from."""
    chain = list(_chain(error))
    for one in chain:
        # Ours name a setting, and no value.
        if isinstance(one, SettingsError | ConnectionsError) and one.__cause__ is None:
            return Reason(Kind.SETTING, one.message.rstrip("."))
    texts = " ".join(f"{type(one).__name__}: {one}" for one in chain)
    for number in _AADSTS.findall(texts):
        if number in _NUMBERS:
            known = _NUMBERS[number]
            return Reason(known.kind, f"{known.text} (AADSTS{number})")
    if (network := _network(texts)) is not None:
        return network
    if (number := _AADSTS.search(texts)) is not None:
        return Reason(Kind.SIGN_IN, f"the sign-in service has refused ({number[0]})")
    for one in chain:
        if isinstance(one, ServiceError):
            return _refusal(one)
    return _of_libraries(chain, texts)


def _network(texts: str) -> Reason | None:
    if _TLS.search(texts):
        return Reason(
            Kind.TLS,
            "the server's certificate is not trusted. An authority of your own is told by REQUESTS_CA_BUNDLE "
            "(for signing in) and SSL_CERT_FILE (for requests)",
        )
    if _UNKNOWN_HOST.search(texts):
        return Reason(Kind.UNREACHABLE, "there is no host of this name: check the address and the name server")
    if _CLOSED.search(texts):
        return Reason(Kind.UNREACHABLE, "nothing listens at this address (connection refused)")
    if _TIMES_OUT.search(texts):
        return Reason(Kind.TIMEOUT, "no answer in time")
    if _LOST.search(texts):
        return Reason(Kind.UNREACHABLE, "the server cannot be reached, or ended the connection")
    return None


def _refusal(error: ServiceError) -> Reason:
    """What an environment answered, which is for its users to read."""
    if error.status == 401:
        return Reason(
            Kind.REFUSED, "the environment refuses the token: tenantId or url is another environment's"
        )
    if error.status == 403:
        return Reason(
            Kind.REFUSED, "the app is no application user of the environment, or has no security role there"
        )
    if error.status == 404 or (
        error.status is not None and error.service_message is None and error.status < 500
    ):
        return Reason(Kind.URL, "what answers at this url is no Dataverse environment")
    return Reason(Kind.REFUSED, error.message)


def _of_libraries(chain: list[BaseException], texts: str) -> Reason:
    if _CERTIFICATE.search(texts):
        return Reason(
            Kind.SECRET,
            "the certificate cannot be opened: its password is wrong or missing, or it has no private key",
        )
    if "CredentialUnavailableError" in texts or "EnvironmentCredential" in texts:
        return Reason(
            Kind.SIGN_IN,
            "this machine has no such identity: managed and workload identities are there on Azure only",
        )
    return Reason(Kind.SIGN_IN, f"the sign-in library has given up ({type(chain[-1]).__name__})")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, which azure-core keeps in an attribute of its own."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, BaseException) and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__, getattr(one, "inner_exception", None)]
