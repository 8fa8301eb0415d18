"""What azd reads beside the Bicep files: main.parameters.json and azure.yaml."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import yaml

from infra.azure.lint import syntax
from infra.azure.lint.declared import is_secure, param_type
from infra.azure.lint.literals import of_value
from infra.azure.lint.report import Place, Report, Rule, hint
from infra.azure.lint.types import BOOL, Int, Type, mismatch
from infra.azure.lint.walk import walk

#: What azd puts into its environment by itself. Every other variable needs a default.
_OF_AZD: Final = frozenset({"AZURE_ENV_NAME", "AZURE_LOCATION", "AZURE_PRINCIPAL_ID", "AZURE_SUBSCRIPTION_ID"})
_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)(?:=([^}]*))?\}")
_TAG: Final = "azd-service-name"
_TAGS: Final = ("azd-env-name", _TAG)


def check_parameters(path: Path, main: syntax.File, report: Report) -> None:
    try:
        given = json.loads(path.read_text("utf-8"))["parameters"]
        entries = {name: entry["value"] for name, entry in given.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        report.add(Place(), Rule.PARAMETER, f"{path.name} is no parameters file: {type(error).__name__}")
        return
    params = {param.name: param for param in main.of(syntax.Param)}
    for name, value in entries.items():
        param = params.get(name)
        if param is None:
            report.add(Place(), Rule.PARAMETER, f"main.bicep has no parameter '{name}'." + hint(name, params))
        elif is_secure(param):
            report.add(Place(), Rule.SECRET, f"'{name}' is secret: it may not stand in a parameters file")
        else:
            _check_value(name, value, param_type(param), report)
    for name, param in params.items():
        if param.default is None and name not in entries:
            report.add(Place(), Rule.PARAMETER, f"'{name}' has no default and is not given")


def _check_value(name: str, value: object, legal: Type, report: Report) -> None:
    match = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        if isinstance(value, str) and "$" in value:
            report.add(
                Place(), Rule.PARAMETER, f"'{name}': a variable is written ${{NAME}} or ${{NAME=default}}"
            )
        elif why := mismatch(of_value(value), legal):
            report.add(Place(), Rule.PARAMETER, f"'{name}': {why}")
        return
    variable, default = match.groups()
    if default is None:
        if variable not in _OF_AZD:
            message = f"'{name}': azd does not know {variable} by itself, so it would ask: give a default"
            report.add(Place(), Rule.PARAMETER, message)
    elif why := mismatch(of_value(_typed(default, legal)), legal):
        report.add(Place(), Rule.PARAMETER, f"'{name}': the default of {variable}: {why}")


def _typed(text: str, legal: Type) -> object:
    """A variable's text, as azd makes it a value of the parameter's type."""
    if legal == BOOL and text in ("true", "false"):
        return text == "true"
    if isinstance(legal, Int) and re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    return text


def check_azd(path: Path, root: Path, trees: list[syntax.File], report: Report) -> None:
    """`root`: the repository's folder, where azure.yaml stands."""
    try:
        given = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        report.add(Place(), Rule.PROJECT, f"{path.name} cannot be read: {type(error).__name__}")
        return

    def tell(message: str) -> None:
        report.add(Place(), Rule.PROJECT, message)

    legal = {"name", "metadata", "infra", "services", "hooks", "pipeline", "requiredVersions"}
    for key in sorted(set(given) - legal):
        tell(f"there is no key '{key}'." + hint(key, legal))
    infra = given.get("infra") or {}
    if infra.get("provider") != "bicep":
        tell("infra.provider must be bicep")
    if not (root / str(infra.get("path")) / f"{infra.get('module')}.bicep").is_file():
        tell("infra.path and infra.module must name the folder and the name of main.bicep")
    services = given.get("services") or {}
    for name, service in services.items():
        _check_service(name, service, root, tell)
    tagged = [value for tree in trees for tag, value in _azd_tags(tree, report) if tag == _TAG]
    if sorted(tagged) != sorted(services):
        tell(f"the tag {_TAG} of the resources names {tagged}, and services are {sorted(services)}")
    for hook, shells in (given.get("hooks") or {}).items():
        _check_hook(f"hooks.{hook}", hook, _HOOKS, shells, root, tell)


def _pre_and_post(*names: str) -> tuple[str, ...]:
    return tuple(when + name for name in names for when in ("pre", "post"))


#: Of the commands, and of what becomes of a service. Where azd packages a service within another command, the
#: latter alone are run.
_HOOKS: Final = _pre_and_post("provision", "package", "deploy", "up")
_SERVICE_HOOKS: Final = _pre_and_post("restore", "build", "package", "publish", "deploy")


def _check_service(name: str, service: dict[str, Any], root: Path, tell: Any) -> None:
    # `custom` with a zip: what stands there is deployed as it is.
    wanted = {"language": "custom", "dist": "dist/app.zip", "host": "function", "remoteBuild": True}
    for key in sorted(set(service) - {*wanted, "project", "resourceName", "hooks"}):
        tell(f"services.{name}: there is no key '{key}'." + hint(key, (*wanted, "project")))
    for key, value in wanted.items():
        if service.get(key) != value:
            tell(f"services.{name}.{key} must be {str(value).lower()}")
    if not (root / str(service.get("project")) / "host.json").is_file():
        tell(f"services.{name}.project must be the folder of host.json")
    hooks = service.get("hooks") or {}
    if "prepackage" not in hooks:
        tell(f"services.{name}.hooks.prepackage must make {wanted['dist']}")
    for hook, shells in hooks.items():
        _check_hook(f"services.{name}.hooks.{hook}", hook, _SERVICE_HOOKS, shells, root, tell)


def _check_hook(
    place: str, hook: str, legal: tuple[str, ...], shells: dict[str, Any], root: Path, tell: Any
) -> None:
    if hook not in legal:
        tell(f"there is no hook '{hook}'." + hint(hook, legal))
    for system, shell in (("posix", "sh"), ("windows", "pwsh")):
        entry = shells.get(system) or {}
        script = root / str(entry.get("run"))
        if entry.get("shell") != shell or not script.is_file():
            tell(f"{place}.{system} must have shell {shell} and run a script that is there")
        elif system == "posix" and not os.access(script, os.X_OK):
            tell(f"{place}.{system}: {script.name} must be executable")


def _azd_tags(tree: syntax.File, report: Report) -> list[tuple[str, str]]:
    """The tags that azd finds resources by, with their values where those are written out."""
    found: list[tuple[str, str]] = []
    for statement in tree.statements:
        top = statement.default if isinstance(statement, syntax.Param) else statement.value
        for node in walk(top) if top is not None else ():
            for field in node.fields if isinstance(node, syntax.Object) else ():
                if field.key and field.key.startswith("azd-"):
                    if field.key not in _TAGS:
                        message = f"azd looks for no tag '{field.key}'." + hint(field.key, _TAGS)
                        report.add(Place(), Rule.PROJECT, message)
                    value = field.value.value if isinstance(field.value, syntax.Literal) else ""
                    found.append((field.key, str(value)))
    return found
