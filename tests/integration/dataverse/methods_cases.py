"""What a case of a method says: what is given, what has to arrive, and what has to come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from infra.local.dataverse.api import handle
from infra.local.dataverse.authority import App
from infra.local.dataverse.call import Answer, Call, parse_query
from infra.local.dataverse.schema import stable_id
from infra.local.dataverse.stand_in import TENANT

if TYPE_CHECKING:
    from infra.local.dataverse.environment import Environment
    from shared.tool.spec import JsonObject

NAMES: Final = ("dev", "uat")
#: Each environment admits its own app only: a token of the other one's is refused there.
APPS: Final = {name: App(stable_id("app", name), f"secret-of-{name}", TENANT) for name in NAMES}
ROOT: Final = "/api/data/v9.2/"
#: What queries prefer.
ANNOTATED: Final = 'return=representation,odata.include-annotations="*"'


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it has to arrive. A header that is None is absent."""

    method: str
    #: Below the root, as it is sent; or a function that looks at that.
    target: str | Callable[[str], None]
    #: JSON, or a function that looks at the text.
    body: Any = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    media: str = "application/json"


@dataclass(frozen=True, slots=True)
class Plan:
    """One call: its arguments, what it sends (metadata that is kept left out), and what looks at its result."""

    arguments: tuple[Any, ...]
    sent: tuple[Sent, ...]
    #: Given the result; a value is compared with it.
    result: Any
    #: A method that asks nobody takes no target and no headers.
    network: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """A method by its original name, and its plan for an environment."""

    method: str
    plan: Callable[[Place], Plan]

    def __str__(self) -> str:
        return f"{self.method}-{self.plan.__name__}"


class Cases(list[Case]):
    """The cases of one module, each a function decorated with `of`."""

    def of(self, method: str) -> Callable[[Callable[[Place], Plan]], Callable[[Place], Plan]]:
        def add(plan: Callable[[Place], Plan]) -> Callable[[Place], Plan]:
            self.append(Case(method, plan))
            return plan

        return add


@dataclass(frozen=True, slots=True)
class Place:
    """One of the two environments."""

    name: str
    url: str
    environment: Environment

    @property
    def root(self) -> str:
        return self.url + ROOT

    def account(self, number: int = 1) -> str:
        return stable_id("account", self.name, str(number))

    def contact(self, number: int = 1) -> str:
        return stable_id("contact", self.name, str(number))

    def post(self, path: str, body: JsonObject) -> Answer:
        """What somebody else has made here: no request of the API's."""
        user = self.environment.user_of(APPS[self.name].client_id)
        answer = handle(self.environment, Call("POST", path, self.root, body=json.dumps(body).encode()), user)
        assert answer.status < 400, answer.body
        return answer

    def get(self, path: str) -> JsonObject:
        """What the environment answers, by no request of the API's."""
        path, _, query = path.partition("?")
        user = self.environment.user_of(APPS[self.name].client_id)
        answer = handle(self.environment, Call("GET", path, self.root, parse_query(query)), user)
        found: JsonObject = {"status": answer.status, **json.loads(answer.content or b"{}")}
        return found

    def new_account(self, **values: Any) -> str:
        """The id of an account that no other case knows."""
        return self.environment.insert("account", {"name": "Of one case", **values})
