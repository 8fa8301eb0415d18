"""`@prompt`: makes a plain function a prompt, a text that a person picks and an agent starts from."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict, Unpack, overload

from azure.functions import PromptArgument

from shared.errors import InputError, ResultError
from shared.text import clean_text
from shared.tool.collecting import Faults, collected
from shared.tool.content import McpContentBlock, McpTextContent, is_block
from shared.tool.declaration import (
    TextParameter,
    bypassed,
    description_of,
    function_name,
    icons_text,
    json_text,
    signature_of,
    subject_of,
    usable_options,
)
from shared.tool.json_form import dumps
from shared.tool.spec import JsonObject
from shared.tool.validation import kind_of
from shared.tool.wire import wire_block

#: Where a decorated function keeps what `@prompt` made of it.
ATTRIBUTE: Final = "__toolbox_prompt__"
_ROLES: Final = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt. A text stands for a text block."""

    role: Literal["user", "assistant"]
    content: str | McpContentBlock

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            raise ResultError(f"a prompt's message has the role user or assistant, not {self.role!r}")
        if not isinstance(self.content, str) and not is_block(self.content):
            raise ResultError(
                f"a prompt's message holds a text or one content block, not {type(self.content).__name__}"
            )

    def to_wire(self) -> JsonObject:
        block = McpTextContent(self.content) if isinstance(self.content, str) else self.content
        return {"role": self.role, "content": wire_block(block)}


class PromptOptions(TypedDict, total=False):
    """The options of `@prompt`; all may be left out."""

    #: The function's name.
    name: str
    title: str
    #: The docstring.
    description: str
    #: A list of `{"src": …, "mimeType"?, "sizes"?}`, or its JSON text.
    icons: Sequence[JsonObject] | str
    #: Published as `_meta`: a dict, or its JSON text.
    metadata: JsonObject | str


class PromptFields(TypedDict, total=False):
    """Keyword arguments of `FunctionApp.mcp_prompt_trigger`."""

    prompt_name: str
    prompt_arguments: list[PromptArgument]
    title: str
    description: str
    icons: str
    metadata: str
    use_result_schema: bool


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """One prompt."""

    name: str
    title: str | None
    description: str
    arguments: tuple[TextParameter, ...]
    #: JSON texts: a list of objects, an object.
    icons: str | None
    metadata: str | None
    #: The function promises one text, which every host can take as it is; the rest needs the envelope.
    plain: bool

    @property
    def function_name(self) -> str:
        return function_name("prompt", self.name)

    def trigger_fields(self) -> PromptFields:
        fields = PromptFields(
            prompt_name=self.name,
            description=self.description,
            # Without a description: '' and not null, which clients that validate refuse.
            prompt_arguments=[
                PromptArgument(argument.name, argument.description or "", argument.required)
                for argument in self.arguments
            ],
            use_result_schema=not self.plain,
        )
        if self.title is not None:
            fields["title"] = self.title
        if self.icons is not None:
            fields["icons"] = self.icons
        if self.metadata is not None:
            fields["metadata"] = self.metadata
        return fields


@dataclass(frozen=True, slots=True)
class DecoratedPrompt:
    """A decorated function with its spec."""

    spec: PromptSpec
    function: Callable[..., Any]


@overload
def prompt[F: Callable[..., Any]](function: F, /) -> F: ...


@overload
def prompt[F: Callable[..., Any]](**options: Unpack[PromptOptions]) -> Callable[[F], F]: ...


def prompt(function: Callable[..., Any] | None = None, /, **options: Unpack[PromptOptions]) -> Any:
    """Declares a sync or async function as a prompt: `@prompt` or `@prompt(title=…)`.

    The prompt's arguments are the function's parameters, all annotated `str` or `str | None`; one with a
    default or None is optional. It returns a text (one user message), a `PromptMessage`, a list of either, or
    None for no messages.

    Raises `DeclarationError` that names the prompt and every parameter or option that is wrong.
    """
    return _declare(function, options) if function is not None else lambda target: _declare(target, options)


@collected
def _declare[F: Callable[..., Any]](function: F, options: PromptOptions) -> F:
    subject = subject_of("prompt", function, options)
    faults = Faults(subject.fault("").message)
    given = usable_options(subject, function, options, tuple(PromptOptions.__annotations__), faults)
    description = faults.tried(lambda: description_of(subject, function, given.get("description")))
    signature = faults.tried(lambda: signature_of(subject, function))
    pictures = given.get("icons")
    icons = faults.tried(
        lambda: icons_text(subject, list(pictures) if isinstance(pictures, tuple) else pictures),
    )
    metadata = faults.tried(lambda: json_text(subject, "metadata", given.get("metadata")))
    faults.check()
    # Else there are faults.
    assert signature is not None
    assert description is not None
    spec = PromptSpec(
        name=subject.name,
        title=given.get("title"),
        description=description,
        arguments=signature.parameters,
        icons=icons,
        metadata=metadata,
        plain=signature.returns is str,
    )
    setattr(function, ATTRIBUTE, DecoratedPrompt(spec, function))
    return function


def declared(value: object) -> DecoratedPrompt | None:
    """What `@prompt` made of a function; None for anything else. Raises `DeclarationError`."""
    found = getattr(value, ATTRIBUTE, None)
    if not isinstance(found, DecoratedPrompt):
        return None
    if found.function is not value:
        raise bypassed("prompt", found.spec.name)
    return found


def check_arguments(spec: PromptSpec, given: Any) -> dict[str, str | None]:
    """The function's keyword arguments. Null for an optional one counts as absent.

    Raises `InputError` that lists every fault.
    """
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise InputError(f"Prompt '{spec.name}': arguments must be an object, not {kind_of(given)}")
    present: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    known = {argument.name: argument for argument in spec.arguments}
    faults = [
        f"$.{name}: required argument is missing"
        for name, argument in known.items()
        if argument.required and name not in present
    ]
    for name, value in present.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known) or 'none'}"
            faults.append(f"$: unknown argument '{name[:80]}'; {hint}")
        elif not isinstance(value, str):
            faults.append(f"$.{name}: expected string, got {kind_of(value)}")
    if faults:
        raise InputError(f"Prompt '{spec.name}': {'; '.join(faults)}")
    return {**{name: None for name, argument in known.items() if argument.none_when_absent}, **present}


def messages(spec: PromptSpec, value: Any) -> str:
    """The string for the host: the text itself for a prompt that promises one, else a `get_prompt_result`
    envelope around what a function returned. Raises `ResultError`.
    """
    if spec.plain:
        if not isinstance(value, str):
            raise ResultError(f"it is annotated '-> str' and returned {type(value).__name__}")
        return clean_text(value)
    items = [] if value is None else value if isinstance(value, list | tuple) else [value]
    if any(item is None for item in items):
        # Left out silently, a forgotten `return` in the middle of a list would pass for a message less.
        raise ResultError("its list of messages holds None; leave the item out, or return None for no messages")
    result = {"description": spec.description, "messages": [_message(item).to_wire() for item in items]}
    return dumps({"type": "get_prompt_result", "content": dumps(result)})


def _message(item: Any) -> PromptMessage:
    if isinstance(item, str):
        return PromptMessage("user", item)
    if not isinstance(item, PromptMessage):
        raise ResultError(f"a prompt is made of texts and PromptMessage, not {type(item).__name__}")
    return item
