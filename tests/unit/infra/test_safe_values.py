"""What the templates close stays closed. The lint takes any legal value: here are the safe ones."""

from __future__ import annotations

import re

import pytest

from infra.azure.lint import syntax
from infra.azure.lint.resources import unwrapped
from infra.azure.lint.statements import parse
from tests.unit.infra.support import AZURE, BICEP, REPO

#: (file, its resource, the property's path, its value). A tuple is `condition ? then : other`.
SAFE = [
    ("storage", "account", "allowSharedKeyAccess", False),
    ("storage", "account", "allowBlobPublicAccess", False),
    ("storage", "account", "allowCrossTenantReplication", False),
    ("storage", "account", "defaultToOAuthAuthentication", True),
    ("storage", "account", "supportsHttpsTrafficOnly", True),
    ("storage", "account", "minimumTlsVersion", "TLS1_2"),
    ("storage", "account", "publicNetworkAccess", ("isPrivate", "Disabled", "Enabled")),
    ("storage", "account", "networkAcls.defaultAction", ("isPrivate", "Deny", "Allow")),
    ("storage", "containers", "publicAccess", "None"),
    ("vault", "vault", "enableRbacAuthorization", True),
    ("vault", "vault", "enableSoftDelete", True),
    ("vault", "vault", "enablePurgeProtection", ("purgeProtection", True, None)),
    ("monitoring", "insights", "DisableLocalAuth", True),
    ("app", "app", "httpsOnly", True),
    ("app", "app", "siteConfig.ftpsState", "Disabled"),
    ("app", "app", "siteConfig.minTlsVersion", "1.2"),
    ("app", "app", "siteConfig.scmMinTlsVersion", "1.2"),
    ("app", "app", "functionAppConfig.deployment.storage.authentication.type", "UserAssignedIdentity"),
    ("app", "publishing", "allow", False),
    ("authentication", "authentication", "platform.enabled", True),
    ("authentication", "authentication", "globalValidation.requireAuthentication", True),
    ("authentication", "authentication", "globalValidation.unauthenticatedClientAction", "Return401"),
    ("authentication", "authentication", "globalValidation.excludedPaths", ["/healthz"]),
    ("authentication", "authentication", "httpSettings.requireHttps", True),
    ("authentication", "authentication", "identityProviders.azureActiveDirectory.enabled", True),
    ("authentication", "authentication", "login.tokenStore.enabled", False),
]
#: (file, whose diagnostics, categories of its log, categories of its metrics).
DIAGNOSTICS = [
    ("vault", "vault", ["AuditEvent"], ["AllMetrics"]),
    ("storage", "blobs", ["StorageDelete"], ["Transaction"]),
    ("storage", "queueService", [], ["Transaction"]),
    ("storage", "tableService", [], ["Transaction"]),
    ("app", "app", ("signIn", ["AppServiceAuthenticationLogs"], []), ["AllMetrics"]),
]
PAGE = (REPO / "docs" / "deploy.md").read_text("utf-8")


def text_of(name: str) -> str:
    return (AZURE / name).read_text("utf-8")


def module(name: str) -> syntax.File:
    return parse(text_of(f"modules/{name}.bicep"))


def plain(node: syntax.Expression | None) -> object:
    match node:
        case syntax.Literal(value=value):
            return value
        case syntax.Name(name=name):
            return name
        case syntax.Array(items=items):
            return [plain(item) for item in items]
        case syntax.Ternary(test=test, then=then, other=other):
            return (plain(test), plain(then), plain(other))
    return f"no {type(node).__name__} is safe"


def at(node: syntax.Expression | None, path: str) -> syntax.Expression | None:
    for key in path.split("."):
        node = node.get(key) if isinstance(node, syntax.Object) else None
    return node


def enabled(node: syntax.Expression | None) -> object:
    """Categories of a list of logs or metrics that are switched on, with the list's condition."""
    match node:
        case syntax.Ternary(test=test, then=then, other=other):
            return (plain(test), enabled(then), enabled(other))
        case syntax.Array(items=items):
            return [plain(at(item, "category")) for item in items if plain(at(item, "enabled")) is True]
    return []


@pytest.mark.parametrize(("name", "resource", "path", "value"), SAFE)
def test_what_is_closed_stays_closed(name: str, resource: str, path: str, value: object) -> None:
    (found,) = (one.value for one in module(name).of(syntax.Resource) if one.name == resource)
    given = plain(at(unwrapped(found), f"properties.{path}"))
    assert (type(given), given) == (type(value), value)


def test_nobody_publishes_with_a_password() -> None:
    (found,) = (one.value for one in module("app").of(syntax.Resource) if one.name == "publishing")
    assert isinstance(found, syntax.Loop)
    assert plain(found.items) == ["ftp", "scm"]


@pytest.mark.parametrize(("name", "scope", "logs", "metrics"), DIAGNOSTICS)
def test_who_did_what_is_written_down(name: str, scope: str, logs: object, metrics: object) -> None:
    (found,) = (
        one.value
        for one in module(name).of(syntax.Resource)
        if plain(at(one.value, "scope")) == scope and at(one.value, "properties.workspaceId")
    )
    assert enabled(at(found, "properties.logs")) == logs
    assert enabled(at(found, "properties.metrics")) == metrics


def test_no_diagnostics_are_left_out_above() -> None:
    count = sum(text_of(name).count("'Microsoft.Insights/diagnosticSettings@") for name in BICEP)
    assert count == len(DIAGNOSTICS)


def output(name: str) -> str:
    """What an output is, as it is written."""
    (found,) = re.findall(rf"^output {name} string = (.*)$", text_of("main.bicep"), re.MULTILINE)
    return str(found)


def test_the_keys_command_prints_the_key_of_the_mcp_endpoint_and_there_is_none_with_sign_in() -> None:
    given = re.fullmatch(r"empty\(entraClientId\) \? '([^']*)' : ''", output("MCP_KEY_COMMAND"))
    assert given is not None
    assert given[1] == (
        "az functionapp keys list --resource-group ${group.name} --name ${app.outputs.name} "
        "--query systemKeys.mcp_extension --output tsv"
    )


def test_the_pages_address_leads_through_the_sign_in_where_there_is_one() -> None:
    given = re.fullmatch(r"empty\(entraClientId\) \? '([^']*)' : '([^']*)'", output("PAGE_URL"))
    assert given is not None
    assert given[1] == "${app.outputs.url}/"
    assert given[2] == "${app.outputs.url}/.auth/login/aad?post_login_redirect_uri=/"


def test_secrets_have_the_same_names_wherever_they_are_named() -> None:
    app = set(re.findall(r"\$\{vaultUri\}secrets/([^)']+)\)", text_of("modules/app.bicep")))
    assert len(app) == 4
    made = set(re.findall(r"^make_once (\S+)$", text_of("hooks/secrets.sh"), re.MULTILINE))
    assert made < app
    told = set(re.findall(r"az keyvault secret \w+ .*?--name ([a-z-]+)", PAGE))
    told |= set(re.findall(r"the secret `([a-z-]+)`", PAGE))
    # One is the page's own example of a secret that somebody adds.
    assert told - {"sales-client-secret"} == app
