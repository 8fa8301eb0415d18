"""The infrastructure gives what the code asks for, under the same names, and nothing beside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.azure.lint import syntax
from infra.azure.lint.settings import PLATFORM, app_settings
from infra.azure.lint.statements import parse
from infra.azure.lint.walk import walk
from shared.invocations import record
from shared.jobs import store
from tests.unit.infra.support import AZURE, REPO

#: Put there by the platform (as every WEBSITE_… that the code reads), by the system, or by the app for its own
#: processes and libraries; never by a deployment.
NOT_DEPLOYED = {
    "APPLICATIONINSIGHTS_CONTROLPLANE_DISABLED",
    "APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL",
    "IDENTITY_ENDPOINT",
    "MCP_CONFIG",
    "PATH",
    "PATHEXT",
}
_SETTING = re.compile(
    r"(?:TOOLBOX|MCP|APPLICATIONINSIGHTS|OTEL)_[A-Z0-9_]+|AzureWebJobs\w+|AzureFunctionsJobHost__\w+"
)
#: What deployments of this project call the client classes that need a role, and the role.
ROLE_OF_CLIENT = {
    "ContainerClient": "storageBlobDataOwner",
    "QueueClient": "storageQueueDataContributor",
    "TableClient": "storageTableDataContributor",
}


def tree(name: str) -> syntax.File:
    return parse((AZURE / name).read_text("utf-8"))


def var(file: syntax.File, name: str) -> syntax.Expression:
    (found,) = (one.value for one in file.of(syntax.Var) if one.name == name)
    return found


def texts_of(node: syntax.Expression) -> list[str]:
    return [
        str(one.value) for one in walk(node) if isinstance(one, syntax.Literal) and isinstance(one.value, str)
    ]


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for path in [REPO / "function_app.py", *sorted((REPO / "shared").rglob("*.py"))]:
        yield path, ast.parse(path.read_text("utf-8"))


def settings_that_the_code_reads() -> set[str]:
    """Texts that are a setting's name as a whole, and whatever `environ` is asked for by a written-out name."""
    found: set[str] = set()
    for _, module in sources():
        for node in ast.walk(module):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and _SETTING.fullmatch(node.value)
            ):
                found.add(node.value)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("environ.get", "getenv")):
                found |= {str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant)}
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
                found |= {str(node.slice.value)} if isinstance(node.slice, ast.Constant) else set()
    return found


def test_every_setting_that_the_code_reads_is_set_or_documented() -> None:
    read = settings_that_the_code_reads()
    assert {"AzureWebJobsStorage", "TOOLBOX_SEAL_KEY", "TOOLBOX_TRUST_EASYAUTH", "CONNECTIONS"} <= read
    known = set(app_settings(tree("modules/app.bicep"))) | set(PLATFORM) | NOT_DEPLOYED
    page = (REPO / "docs" / "settings.md").read_text("utf-8")

    def is_documented(name: str) -> bool:
        # OpenTelemetry's own variables are documented by OpenTelemetry.
        return (
            f"`{name}`" in page
            or name.startswith("WEBSITE_")
            or (name.startswith("OTEL_") and "`OTEL_*`" in page)
        )

    assert {name for name in read - known if not name.endswith("__") and not is_documented(name)} == set()


def test_every_setting_that_is_set_is_read_by_the_code_or_the_platform() -> None:
    given = set(app_settings(tree("modules/app.bicep")))
    assert {"AzureWebJobsStorage__credential", "MCP_AUTH_TOKENS", "TOOLBOX_SEAL_KEYS"} <= given
    read = settings_that_the_code_reads()
    assert {name for name in given if name not in read and name not in PLATFORM} == set()
    assert "AzureWebJobsStorage" not in given, "a connection string would win over the identity"


def test_the_code_reads_the_account_that_the_settings_name() -> None:
    """With the names that Bicep sets and values of their kinds."""
    from shared.account import StorageIdentity, storage_account

    given = app_settings(tree("modules/app.bicep"))
    values = {
        f"AzureWebJobsStorage__{name}ServiceUri": f"https://st1.{name}.x.net/"
        for name in ("blob", "queue", "table")
    }
    for name, (_, value) in given.items():
        if name.startswith("AzureWebJobsStorage__") and name not in values:
            values[name] = str(value.value) if isinstance(value, syntax.Literal) else "client"
    assert set(values) <= set(given)
    assert storage_account(values) == StorageIdentity(
        "https://st1.blob.x.net", "https://st1.queue.x.net", "https://st1.table.x.net", "client", managed=True
    )


def test_every_role_is_needed_by_a_client_and_every_client_has_its_role() -> None:
    made = {
        node.func.id
        for _, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ROLE_OF_CLIENT
    }
    roles = var(tree("modules/storage.bicep"), "roles")
    assert isinstance(roles, syntax.Object)
    assert {field.key for field in roles.fields} == {ROLE_OF_CLIENT[name] for name in made}


def test_no_other_kind_of_storage_client_is_made() -> None:
    """A new kind needs a role, and a line above."""
    names = re.compile(r"(?:Table|Queue|Blob|Container|Share|DataLake)\w*Client\b")
    found = {
        name
        for path, _ in sources()
        for name in names.findall(path.read_text("utf-8"))
        if not name.endswith("Error")
    }
    assert found == set(ROLE_OF_CLIENT)


def test_queues_tables_and_containers_have_the_names_of_the_code() -> None:
    storage = tree("modules/storage.bicep")
    tables = {
        node.value.value
        for _, module in sources()
        for node in ast.walk(module)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "TABLE"
        and isinstance(node.value, ast.Constant)
    }
    assert {store.TABLE, record.TABLE} <= tables
    assert set(texts_of(var(storage, "tableNames"))) == tables
    assert texts_of(var(storage, "queueNames")) == [store.QUEUE, store.POISON_QUEUE]
    assert texts_of(var(storage, "jobFiles")) == [store.CONTAINER]


def test_left_over_files_are_removed_later_than_retention_and_never_the_package() -> None:
    (rule,) = (
        node
        for resource in tree("modules/storage.bicep").of(syntax.Resource)
        for node in walk(resource.value)
        if isinstance(node, syntax.Object) and node.get("daysAfterModificationGreaterThan")
    )
    days = rule.get("daysAfterModificationGreaterThan")
    assert isinstance(days, syntax.Binary)
    assert (days.operator, days.left) == ("+", syntax.Name(days.left.place, "retentionDays"))
    # The package is another container than the files that the rule is for.
    assert texts_of(var(tree("modules/storage.bicep"), "packages")) != [store.CONTAINER]


@pytest.mark.parametrize("script", ["secrets.sh", "secrets.ps1"])
def test_the_hook_makes_the_secrets_that_the_app_always_needs(script: str) -> None:
    text = (AZURE / "hooks" / script).read_text("utf-8")
    app = (AZURE / "modules" / "app.bicep").read_text("utf-8")
    base = app.partition("var baseSettings")[2].partition("\n}\n")[0]
    needed = re.findall(r"\$\{vaultUri\}secrets/([a-z-]+)\)", base)
    assert sorted(needed) == ["mcp-auth-token", "toolbox-seal-key"]
    calls = re.findall(r"^(?:make_once|\$\w+ = New-SecretOnce) '?([a-z-]+)'?$", text, re.MULTILINE)
    assert sorted(calls) == sorted(needed)


@pytest.mark.parametrize("script", ["secrets.sh", "secrets.ps1"])
def test_what_the_hook_reads_is_an_output(script: str) -> None:
    asked = set(re.findall(r"AZURE_[A-Z_]+", (AZURE / "hooks" / script).read_text("utf-8")))
    outputs = {output.name for output in tree("main.bicep").of(syntax.Output)}
    assert asked
    assert asked <= outputs


def test_the_endpoint_is_the_one_that_the_local_host_mirrors() -> None:
    from infra.local.host.mcp import PATH

    main = (AZURE / "main.bicep").read_text("utf-8")
    assert f"output MCP_ENDPOINT string = '${{app.outputs.url}}{PATH}'" in main


def test_sign_in_takes_the_key_away_and_trusts_the_header_at_once() -> None:
    """One without the other would be an open endpoint, or a header that anybody can write."""
    signed = var(tree("modules/app.bicep"), "signInSettings")
    assert isinstance(signed, syntax.Ternary)
    assert signed.test == syntax.Name(signed.test.place, "signIn")
    assert isinstance(signed.then, syntax.Object)
    assert {field.key for field in signed.then.fields} == {
        "AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel",
        "OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID",
        "TOOLBOX_TRUST_EASYAUTH",
        "WEBSITE_AUTH_PRM_DEFAULT_WITH_SCOPES",
    }
    assert signed.other == syntax.Object(signed.other.place, ())
    (module,) = tree("modules/app.bicep").of(syntax.Module)
    assert isinstance(module.value, syntax.Condition)
    assert module.value.test == syntax.Name(module.value.test.place, "signIn")
    # Deployed at the same time, there would be a while without a key and without a sign-in.
    (settings,) = (one for one in tree("modules/app.bicep").of(syntax.Resource) if one.name == "settings")
    assert isinstance(settings.value, syntax.Object)
    waits_for = settings.value.get("dependsOn")
    assert isinstance(waits_for, syntax.Array)
    assert [one.name for one in waits_for.items if isinstance(one, syntax.Name)] == [module.name]
    assert "webhookAuthorizationLevel" not in (REPO / "host.json").read_text("utf-8")
    authentication = (AZURE / "modules" / "authentication.bicep").read_text("utf-8")
    assert "clientSecretSettingName: 'OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID'" in authentication


def test_an_owner_of_the_platform_is_one_that_settings_can_grant_projects_to() -> None:
    """The colons are legal where owners are named."""
    from shared import settings

    owner = "entra:72f988bf-0000-4444-8888-2d7cd011db47:b9a1c0de-1111-4222-8333-9c9c9c9c9c9c"
    found = settings.load(
        {"AzureWebJobsStorage": "UseDevelopmentStorage=true", "MCP_AUTH_TOKENS": f'{{"{owner}": "t"}}'}
    )
    assert found.owner_tokens == {owner: ("t",)}


def test_the_runtime_is_the_version_that_is_developed_with() -> None:
    app = (AZURE / "modules" / "app.bicep").read_text("utf-8")
    version = (REPO / ".python-version").read_text("utf-8").strip()
    assert f"name: 'python'\n        version: '{version}'" in app
    assert "azure-functions-runtime==" in (REPO / "requirements.txt").read_text("utf-8")


def test_no_secret_and_no_key_leaves_the_templates() -> None:
    for path in sorted(AZURE.rglob("*.bicep")):
        text = path.read_text("utf-8")
        assert not re.search(r"listKeys|listSecrets|AccountKey|@secure|newGuid|utcNow", text), path.name
