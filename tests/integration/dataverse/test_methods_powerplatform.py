"""`powerplatformAPI`: 15 categories with five methods each, on the wire to the stand-in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from infra.local.dataverse.faults import Fault, Kind
from shared.apis import powerplatformAPI
from shared.apis.naming import to_snake
from shared.errors import PowerPlatformError
from tests.integration.dataverse.methods_bench import ADDITIONAL, Bench
from tests.integration.dataverse.methods_cases import APPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.dataverse.requests_log import Logged

#: As the reference lists them.
CATEGORIES: Final = (
    "Analytics", "AppManagement", "Authorization", "Connectivity", "CopilotStudio", "Dynamics",
    "EnvironmentManagement", "Governance", "Licensing", "PowerApps", "PowerAutomate", "PowerPages",
    "ResourceQuery", "UserManagement", "WorkflowAgents",
)  # fmt: skip
#: Whether a body comes second, last, or not at all.
METHODS: Final = {"Get": None, "Post": 1, "Put": 1, "Patch": 1, "Delete": 3}
PATH: Final = "environments/ä b/it's?api-version=2024-10-01&$filter=name eq 'x'"
SENT: Final = "environments/%C3%A4%20b/it's?api-version=2024-10-01&$filter=name%20eq%20'x'"
BODY: Final = {"name": "Ä", "items": [1, None, True]}
BASE: Final = "/powerplatform/"


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("method", METHODS)
def test_on_the_wire(invocation: Bench, category: str, method: str) -> None:
    place = METHODS[method]

    def arguments(*rest: Any) -> list[Any]:
        """(path, target, headers) with the body where the method has it."""
        given = [PATH, *rest]
        if place is not None:
            given.insert(place, BODY)
        return given

    first = getattr(getattr(powerplatformAPI, category), method)
    found = _one(invocation, "dev", lambda: first(*arguments("primary", {"x-ms-sample": "a"})))
    _right(found, category, method, {"x-ms-sample": "a", "mscrmcallerid": None})

    # The same in snake case, blocking, in the other slot.
    second = getattr(getattr(powerplatformAPI, to_snake(category)), to_snake(method))
    found = _one(invocation, "uat", lambda: asyncio.to_thread(second, *arguments("secondary", ADDITIONAL)))
    _right(found, category, method, {name.lower(): value for name, value in ADDITIONAL.items()})


def _one(invocation: Bench, name: str, work: Callable[[], Any]) -> tuple[Any, Logged]:
    """What a call gave, and its one request, made with the token of that connection."""
    invocation.dataverse.clear_requests()
    found = invocation.run(work)
    (request,) = [one for one in invocation.dataverse.requests() if one.path.startswith(BASE)]
    assert request.app == APPS[name].client_id
    return found, request


def _right(made: tuple[Any, Logged], category: str, method: str, headers: dict[str, str | None]) -> None:
    found, request = made
    body = None if METHODS[method] is None else BODY
    assert request.method == method.upper()
    assert f"{request.path}?{request.query_string}" == f"{BASE}{category.lower()}/{SENT}"
    assert (request.json() if request.body else None) == body
    wanted = {"accept": "application/json", "content-type": "application/json" if body else None, **headers}
    assert {name: request.headers.get(name) for name in wanted} == wanted
    assert found.category == category.lower()
    assert (found.method, found.path, found.body) == (method.upper(), SENT.partition("?")[0], body)
    assert found.query == {"api-version": "2024-10-01", "$filter": "name eq 'x'"}


def test_no_method_is_missing_here() -> None:
    """Whoever adds a category or a method adds it above, and so a test of it."""
    names = {name for name in vars(powerplatformAPI) if not name.startswith("_")}
    assert names == {*CATEGORIES, *map(to_snake, CATEGORIES)}
    for category in CATEGORIES:
        found = getattr(powerplatformAPI, category)
        assert found is getattr(powerplatformAPI, to_snake(category))
        methods = {name for name in dir(found) if not name.startswith("_")} - {"scope"}
        assert methods == {*METHODS, *map(to_snake, METHODS)}
        for method in METHODS:
            assert getattr(type(found), method) is getattr(type(found), to_snake(method))


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (None, "licensing"),
        ("", "licensing"),
        ("?a=b c", "licensing?a=b%20c"),
        ("/reports/empty", "licensing/reports/empty"),
    ],
)
def test_paths(invocation: Bench, path: str | None, target: str) -> None:
    _, request = _one(invocation, "dev", lambda: powerplatformAPI.Licensing.Get(path))
    mark = "?" if request.query_string else ""
    assert f"{request.path}{mark}{request.query_string}" == BASE + target


@pytest.mark.parametrize(
    ("path", "value"), [("a/empty", {}), ("a/no-content", {}), ("a/text", "plain text")], ids=str
)
def test_answers_that_are_no_json(invocation: Bench, path: str, value: Any) -> None:
    assert invocation.run(lambda: powerplatformAPI.Governance.Get(path)) == value


def test_a_refusal_has_code_message_and_request_id(invocation: Bench) -> None:
    with pytest.raises(PowerPlatformError) as caught:
        invocation.run(lambda: powerplatformAPI.Analytics.Post("a/error", {}))
    error = caught.value
    assert (error.service_code, error.service_message, error.status) == (
        "InvalidRequest",
        "This path always fails.",
        400,
    )
    assert error.request_id
    assert error.message == (
        f"InvalidRequest: This path always fails. (HTTP 400, request id {error.request_id})"
    )


def test_busy_and_an_expired_token_are_no_failures(invocation: Bench) -> None:
    dataverse = invocation.dataverse
    dataverse.arm(Fault(Kind.THROTTLED, path=BASE, nth=(1,), retry_after="0.05"))
    dataverse.arm(Fault(Kind.EXPIRED, path=BASE, nth=(2,)))
    dataverse.clear_requests()
    found = invocation.run(lambda: powerplatformAPI.PowerApps.Post("apps", {"x": 1}))
    assert found.body == {"x": 1}
    assert [one.status for one in dataverse.requests() if one.path.startswith(BASE)] == [429, 401, 200]
