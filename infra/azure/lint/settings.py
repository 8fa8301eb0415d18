"""App settings: which ones a deployment sets, and whether anybody reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from infra.azure.lint import syntax
from infra.azure.lint.report import Place, Report, Rule, hint
from infra.azure.lint.resources import unwrapped

#: What the platform, the host or a library reads, by whom it is documented.
PLATFORM: Final = {
    "APPLICATIONINSIGHTS_AUTHENTICATION_STRING": "App settings reference for Azure Functions",
    "APPLICATIONINSIGHTS_CONNECTION_STRING": "App settings reference for Azure Functions",
    "AZURE_CLIENT_ID": "azure-identity: DefaultAzureCredential",
    "AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel": "host.json as app settings",
    "AzureFunctionsJobHost__functionTimeout": "host.json as app settings",
    "AzureWebJobsDisableHomepage": "App settings reference for Azure Functions",
    "AzureWebJobsStorage__accountName": "Identity-based connections",
    "AzureWebJobsStorage__blobServiceUri": "Identity-based connections",
    "AzureWebJobsStorage__clientId": "Identity-based connections",
    "AzureWebJobsStorage__credential": "Identity-based connections",
    "AzureWebJobsStorage__queueServiceUri": "Identity-based connections",
    "AzureWebJobsStorage__tableServiceUri": "Identity-based connections",
    "OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID": "Built-in authentication: a managed identity instead of a secret",
    "WEBSITE_AUTH_PRM_DEFAULT_WITH_SCOPES": "Built-in MCP server authorization",
}
#: Flex Consumption refuses or ignores these. Source: "Flex Consumption plan deprecations".
REFUSED: Final = frozenset(
    {
        "ENABLE_ORYX_BUILD",
        "FUNCTIONS_EXTENSION_VERSION",
        "FUNCTIONS_WORKER_RUNTIME",
        "FUNCTIONS_WORKER_RUNTIME_VERSION",
        "SCM_DO_BUILD_DURING_DEPLOYMENT",
        "WEBSITE_CONTENTAZUREFILECONNECTIONSTRING",
        "WEBSITE_CONTENTOVERVNET",
        "WEBSITE_CONTENTSHARE",
        "WEBSITE_DNS_SERVER",
        "WEBSITE_RUN_FROM_PACKAGE",
        "WEBSITE_VNET_ROUTE_ALL",
    }
)
OWN_FILE: Final = "app-settings.json"
_DOCUMENTED = re.compile(r"^\| `([A-Za-z0-9_]+)`", re.MULTILINE)
#: What must not be written out in a file of the repository.
_SECRETS = ("MCP_AUTH_TOKEN", "MCP_AUTH_TOKENS", "TOOLBOX_SEAL_KEY", "TOOLBOX_SEAL_KEYS")
REFERENCE: Final = "@Microsoft.KeyVault("
#: The host's switch for one function. Source: "How to disable functions in Azure Functions".
_SWITCH = re.compile(r"AzureWebJobs\.[A-Za-z][A-Za-z0-9_-]*\.Disabled")


def documented(page: Path) -> frozenset[str]:
    """Settings that a table of docs/settings.md has."""
    return frozenset(_DOCUMENTED.findall(page.read_text("utf-8")))


def app_settings(tree: syntax.File) -> dict[str, tuple[Place, syntax.Expression]]:
    """Every app setting that a file may set, whatever the conditions."""
    values = {var.name: var.value for var in tree.of(syntax.Var)}
    found: dict[str, tuple[Place, syntax.Expression]] = {}
    for resource in tree.of(syntax.Resource):
        body = unwrapped(resource.value)
        name = body.get("name") if isinstance(body, syntax.Object) else None
        if isinstance(name, syntax.Literal) and name.value == "appsettings" and isinstance(body, syntax.Object):
            properties = body.get("properties")
            for field in _fields(properties, values) if properties else ():
                found[field.key or ""] = (field.place, field.value)
    return found


def _fields(node: syntax.Expression, values: dict[str, syntax.Expression]) -> Iterator[syntax.Field]:
    match node:
        case syntax.Object(fields=fields):
            yield from fields
        case syntax.Name(name=name) if name in values:
            yield from _fields(values[name], values)
        case syntax.Ternary(then=then, other=other):
            yield from _fields(then, values)
            yield from _fields(other, values)
        case syntax.Call(name="union", arguments=arguments):
            for argument in arguments:
                yield from _fields(argument, values)


#: Settings that take few values, whoever reads them.
_VALUES: Final = {
    "AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel": ("System", "Anonymous"),
    "AzureWebJobsDisableHomepage": ("true", "false"),
    "AzureWebJobsStorage__credential": ("managedidentity",),
    "TOOLBOX_REQUIRE_TOKEN": ("1", "0"),
    "TOOLBOX_TRUST_EASYAUTH": ("1", "0"),
}


def check_settings(tree: syntax.File, report: Report, known: frozenset[str]) -> None:
    for name, (place, value) in app_settings(tree).items():
        _check_name(name, place, report, known)
        if isinstance(value, syntax.Literal) and value.value not in _VALUES.get(name, (value.value,)):
            report.add(place, Rule.VALUE, f"{name} must be {' or '.join(_VALUES[name])}")
        if name in _SECRETS and not _is_reference(value):
            report.add(place, Rule.SECRET, f"{name} must be a reference to the vault")


def check_own_settings(
    path: Path, report: Report, known: frozenset[str], given_by_bicep: Iterable[str]
) -> None:
    """The file of settings that a deployment adds. `given_by_bicep`: names that the templates set."""
    try:
        given = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        report.add(Place(), Rule.SETTING, f"{path.name} cannot be read: {type(error).__name__}")
        return
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        report.add(Place(), Rule.SETTING, f"{path.name} must be an object of names and texts")
        return
    taken = {_plain(name) for name in given_by_bicep}
    for name, value in given.items():
        if name in _SECRETS and not value.startswith(REFERENCE):
            report.add(Place(), Rule.SECRET, f"{name} must be a reference to the vault")
        if _plain(name) in taken or _is_storage(name):
            message = (
                f"{name} is set by the templates: an option of docs/deploy.md may change it, this file may not"
            )
            report.add(Place(), Rule.SETTING, message)
            continue
        legal = ("true", "false", "1", "0") if _SWITCH.fullmatch(name) else _VALUES.get(name, (value,))
        # Tools and connections have settings of their own, which nobody can know here.
        is_ours = name in REFUSED or name.startswith(("AzureWebJobs", "TOOLBOX_", "MCP_"))
        if is_ours and not _SWITCH.fullmatch(name):
            _check_name(name, Place(), report, known)
        if value not in legal:
            report.add(Place(), Rule.VALUE, f"{name} must be {' or '.join(legal)}")


def _plain(name: str) -> str:
    """One form of a name: the platform takes any case, and the host `:` for `__`."""
    return name.casefold().replace(":", "__")


def _is_storage(name: str) -> bool:
    """The account of the app. A connection string would win over the identity, and hold a key."""
    plain = _plain(name)
    return plain == "azurewebjobsstorage" or plain.startswith("azurewebjobsstorage__")


def _check_name(name: str, place: Place, report: Report, known: frozenset[str]) -> None:
    if name in REFUSED:
        report.add(place, Rule.SETTING, f"the Flex Consumption plan does not take {name}")
    elif name not in known and name not in PLATFORM:
        message = f"nothing reads a setting {name}: docs/settings.md does not have it." + hint(
            name, {*known, *PLATFORM}
        )
        report.add(place, Rule.SETTING, message)


def _is_reference(node: syntax.Expression) -> bool:
    """The text of an interpolated string is not kept, so its vault is what is looked for."""
    return isinstance(node, syntax.Interpolated) and any(
        isinstance(part, syntax.Name) and part.name == "vaultUri" for part in node.parts
    )
