"""The files are without fault, and no fault that is put into them stays unseen.

Each test breaks the real files, one place at a time. What is not seen is listed by name: texts and names that
any value is legal for, so that a new file or a weaker lint shows here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.azure.lint.__main__ import lint
from infra.azure.lint.report import Rule
from tests.unit.infra import support
from tests.unit.infra.support import BICEP, Copy, Mutant, copied

#: What any text is legal for, beside descriptions: names that nothing repeats, addresses, the code's (which
#: test_infra_and_code compares), and what is there to be empty or not.
FREE_TEXTS = {
    "main.bicep": {"''", "','", "'identity'", "'monitoring'", "'storage'", "'vault'", "'network'", "'app'"},
    "modules/app.bicep": {"'{vaultUri}'", "'authentication'", "'to-log-analytics'"},
    "modules/authentication.bicep": {"'/healthz'", "'OVERRIDE_USE_MI_FIC_ASSERTION_CLIENTID'"},
    "modules/monitoring.bicep": set(),
    "modules/identity.bicep": set(),
    "modules/network.bicep": {
        "'10.0.0.0/16'", "'10.0.1.0/24'", "'10.0.2.0/24'", "'app'", "'private-endpoints'", "'flex-consumption'",
        "'default'",
    },
    "modules/storage.bicep": {
        "'app-package'", "'jobs'", "'jobs-poison'", "'invocations'", "'toolsettings'", "'connections'",
        "'left-over-job-files'", "'to-log-analytics'",
    },
    "modules/vault.bicep": {"'to-log-analytics'"},
}  # fmt: skip
#: Statements whose own name nothing has to repeat: outputs of main.bicep, and what acts without being read.
DECLARES = re.compile(r"^(output|resource|module) \w+x ")
#: `!` before a condition turns its sense, which no compiler sees either.
TURNED = re.compile(r"\d+:\d+ ! -> $")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return copied(tmp_path_factory.mktemp("infra"))


def unseen(files: Copy, name: str, mutants: Callable[[str], Iterator[Mutant]], step: int = 1) -> list[Mutant]:
    every = list(mutants(files.text(name)))
    assert every, "there is nothing to break"
    return [mutant for mutant in every[::step] if not files.sees(name, mutant.text)]


def test_the_repository_has_no_findings() -> None:
    assert [str(finding) for finding in lint(support.REPO)] == []


def test_the_copy_that_is_broken_below_has_none_either(files: Copy) -> None:
    assert lint(files.root) == []


@pytest.mark.parametrize("name", BICEP)
def test_every_misspelt_property_is_seen(files: Copy, name: str) -> None:
    assert [mutant.label for mutant in unseen(files, name, support.keys)] == []


@pytest.mark.parametrize("name", BICEP)
def test_every_changed_text_is_seen_where_not_any_is_legal(files: Copy, name: str) -> None:
    found = unseen(files, name, support.texts)
    assert {mutant.label.split(" ", 1)[1].split(" -> ")[0] for mutant in found} == FREE_TEXTS[name]


@pytest.mark.parametrize("name", [name for name in BICEP if name != "modules/identity.bicep"])
def test_every_number_and_truth_value_of_another_type_is_seen(files: Copy, name: str) -> None:
    assert [mutant.label for mutant in unseen(files, name, support.of_other_types)] == []


@pytest.mark.parametrize("name", BICEP)
def test_every_misspelt_name_is_seen(files: Copy, name: str) -> None:
    """Names of functions, decorators, types, keywords, parameters, variables, resources, modules and outputs.
    Each eleventh one, to be quick."""
    for mutant in unseen(files, name, support.names, 11):
        line = mutant.text.splitlines()[int(mutant.label.partition(":")[0]) - 1]
        assert DECLARES.match(line), mutant.label
        assert not line.startswith("output") or name == "main.bicep", mutant.label


@pytest.mark.parametrize("name", BICEP)
def test_every_lost_mark_is_seen(files: Copy, name: str) -> None:
    found = [mutant.label for mutant in unseen(files, name, support.without, 11)]
    assert [label for label in found if not TURNED.match(label)] == []


LEVEL = "AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel"
FAULTS = [
    ("main.bicep", "modules/vault.bicep", "modules/volt.bicep", Rule.MODULE),
    ("main.bicep", "    deployerId: deployer().objectId\n", "", Rule.MISSING_PROPERTY),
    ("main.bicep", "retentionDays: retentionDays", "retentionDays: 'week'", Rule.TYPE),
    ("main.bicep", "retentionDays int = 7", "retentionDays int = 0", Rule.TYPE),
    ("main.bicep", "param virtualNetwork bool", "param virtualNetwork string", Rule.TYPE),
    ("main.bicep", "storage.outputs.queueEndpoint", "storage.outputs.queueEndPoint", Rule.PROPERTY),
    ("main.bicep", "network.?outputs", "network.outputs", Rule.NULLABLE),
    ("main.bicep", "output PAGE_URL string", "output PAGE_URL int", Rule.TYPE),
    ("main.bicep", "  scope: group\n", "", Rule.MISSING_PROPERTY),
    ("main.bicep", "resourceGroups@2024-03-01", "resourceGroups@2024-3-01", Rule.API_VERSION),
    ("main.bicep", "uniqueString(subscription().id", "uniqueString(subscription().ids", Rule.PROPERTY),
    ("main.bicep", "deployer().objectId", "deployer().objectId()", Rule.SYNTAX),
    ("main.bicep", "deployer()", "newGuid()", Rule.UNKNOWN_FUNCTION),
    ("main.bicep", "toLower(", "toLower('a', ", Rule.ARGUMENTS),
    ("main.bicep", "@minLength(1)\n", "@minLength('1')\n", Rule.DECORATOR),
    ("main.bicep", "var tags", "var unused = 1\nvar tags", Rule.UNUSED_SYMBOL),
    ("main.bicep", "var tags", "var token = 1\nvar tags", Rule.DUPLICATE_SYMBOL),
    ("main.bicep", "var token = ", "@secure()\nparam token string\nvar other = ", Rule.UNUSED_SYMBOL),
    ("main.bicep", "param purgeProtection bool = false", "param purgeProtection bool = null", Rule.TYPE),
    ("modules/identity.bicep", "output clientId string", "@secure()\noutput clientId string", Rule.DECORATOR),
    ("modules/storage.bicep", "allowSharedKeyAccess: false", "allowSharedKeyAcces: false", Rule.PROPERTY),
    ("modules/storage.bicep", "allowSharedKeyAccess: false", "allowSharedKeyAccess: 'false'", Rule.TYPE),
    ("modules/storage.bicep", "'TLS1_2'", "'TLS12'", Rule.VALUE),
    ("modules/storage.bicep", "'Disabled' : 'Enabled'", "'Disabled' : 'On'", Rule.VALUE),
    ("modules/storage.bicep", "retentionDays + 14", "retentionDays + '14'", Rule.TYPE),
    ("modules/storage.bicep", "  parent: account\n", "", Rule.PARENT),
    ("modules/storage.bicep", "    parent: blobs", "    parent: account", Rule.PARENT),
    ("modules/storage.bicep", "    scope: account\n", "", Rule.PARENT),
    ("modules/storage.bicep", "primaryEndpoints.blob", "primaryEndpoint.blob", Rule.PROPERTY),
    ("modules/storage.bicep", "primaryEndpoints.queue", "primaryEndpoints.queues", Rule.PROPERTY),
    ("modules/storage.bicep", "queueServices/queues@", "queueServices/queue@", Rule.RESOURCE_TYPE),
    ("modules/storage.bicep", "0f276bb0955b", "0f276bb0955c", Rule.ROLE),
    ("modules/storage.bicep", "storageBlobDataOwner:", "storageBlobDataReader:", Rule.ROLE),
    ("modules/storage.bicep", "name: sku\n", "name: name\n", Rule.VALUE),
    ("modules/storage.bicep", "dependsOn: [\n    containers", "dependsOn: [\n    roles", Rule.TYPE),
    ("modules/storage.bicep", "  kind: 'StorageV2'\n", "", Rule.MISSING_PROPERTY),
    ("modules/vault.bicep", "softDeleteRetentionInDays: 7", "softDeleteRetentionInDays: 6", Rule.TYPE),
    (
        "modules/vault.bicep",
        "tenantId: subscription()",
        "vaultUri: 'x'\n    tenantId: subscription()",
        Rule.READ_ONLY,
    ),
    ("modules/app.bicep", "version: '3.13'", "version: '3.31'", Rule.VALUE),
    ("modules/app.bicep", "name: 'FC1'", "name: 'Y1'", Rule.VALUE),
    ("modules/app.bicep", "scaleAndConcurrency:", "scaleAndConcurency:", Rule.PROPERTY),
    ("modules/app.bicep", "'UserAssignedIdentity'", "'UserAssigned'", Rule.VALUE),
    ("modules/app.bicep", "TOOLBOX_RETENTION_HOURS:", "TOOLBOX_RETENTION_HOUR:", Rule.SETTING),
    (
        "modules/app.bicep",
        "AZURE_CLIENT_ID:",
        "FUNCTIONS_WORKER_RUNTIME: 'python'\n  AZURE_CLIENT_ID:",
        Rule.SETTING,
    ),
    ("modules/app.bicep", "string(retentionDays * 24)", "retentionDays * 24", Rule.TYPE),
    (
        "modules/app.bicep",
        "'@Microsoft.KeyVault(SecretUri=${vaultUri}secrets/mcp-auth-token)'",
        "'abc'",
        Rule.SECRET,
    ),
    ("modules/app.bicep", "'../app-settings.json'", "'../app-setting.json'", Rule.MODULE),
    ("modules/app.bicep", "'azd-service-name': 'app'", "'azd-service-name': 'api'", Rule.PROJECT),
    ("modules/authentication.bicep", "'Return401'", "'Return 401'", Rule.VALUE),
    ("modules/network.bicep", "zones[index].id", "zones['0'].id", Rule.TYPE),
    ("modules/network.bicep", "virtualNetwork: {", "virtualNetwork: null && {", Rule.TYPE),
    ("modules/network.bicep", "for (service, index) in services", "for (service, index) in token", Rule.TYPE),
    ("main.parameters.json", '"retentionDays"', '"retentionDay"', Rule.PARAMETER),
    ("main.parameters.json", "TOOLBOX_RETENTION_DAYS=7", "TOOLBOX_RETENTION_DAYS=week", Rule.PARAMETER),
    ("main.parameters.json", "${TOOLBOX_RETENTION_DAYS=7}", "${TOOLBOX_RETENTION_DAYS}", Rule.PARAMETER),
    ("main.parameters.json", "${AZURE_ENV_NAME}", "$(AZURE_ENV_NAME)", Rule.PARAMETER),
    ("main.parameters.json", "${TOOLBOX_STORAGE_SKU=Standard_LRS}", "Standard_LSR", Rule.PARAMETER),
    ("app-settings.json", "{}", '{"TOOLBOX_LEASE": "1"}', Rule.SETTING),
    ("app-settings.json", "{}", '{"MCP_AUTH_TOKEN": "abc"}', Rule.SECRET),
    ("app-settings.json", "{}", "[]", Rule.SETTING),
    ("app-settings.json", "{}", '{"TOOLBOX_TRUST_EASYAUTH": "1"}', Rule.SETTING),
    ("app-settings.json", "{}", '{"toolbox_trust_easyauth": "1"}', Rule.SETTING),
    ("app-settings.json", "{}", '{"TOOLBOX_RETENTION_HOURS": "24"}', Rule.SETTING),
    ("app-settings.json", "{}", '{"TOOLBOX_REQUIRE_TOKEN": "yes"}', Rule.VALUE),
    ("app-settings.json", "{}", f'{{"{LEVEL}": "Anonymous"}}', Rule.SETTING),
    ("app-settings.json", "{}", f'{{"{LEVEL.replace("__", ":")}": "Anonymous"}}', Rule.SETTING),
    ("app-settings.json", "{}", '{"AzureWebJobsStorage": "AccountName=a;AccountKey=b"}', Rule.SETTING),
    ("app-settings.json", "{}", '{"AzureWebJobsStorage__accountName": "a"}', Rule.SETTING),
    ("app-settings.json", "{}", '{"AzureWebJobs.reaper.Disable": "true"}', Rule.SETTING),
    ("app-settings.json", "{}", '{"AzureWebJobs.reaper.Disabled": "yes"}', Rule.VALUE),
    ("azure.yaml", "path: infra/azure", "path: infra", Rule.PROJECT),
    ("azure.yaml", "host: function", "host: appservice", Rule.PROJECT),
    ("azure.yaml", "  app:", "  api:", Rule.PROJECT),
    ("azure.yaml", "postprovision:", "postprovison:", Rule.PROJECT),
    ("azure.yaml", "hooks/secrets.sh", "hooks/secret.sh", Rule.PROJECT),
    ("azure.yaml", "remoteBuild: true", "remoteBuilds: true", Rule.PROJECT),
    ("azure.yaml", "language: custom", "language: python", Rule.PROJECT),
    ("azure.yaml", "dist: dist/app.zip", "dist: dist/app", Rule.PROJECT),
    ("azure.yaml", "prepackage:", "prepackages:", Rule.PROJECT),
    ("azure.yaml", "prepackage:", "preprovision:", Rule.PROJECT),
    ("azure.yaml", "hooks/package.ps1", "hooks/pack.ps1", Rule.PROJECT),
    ("azure.yaml", "services:", "service:", Rule.PROJECT),
]


@pytest.mark.parametrize(
    ("name", "old", "new", "rule"), [pytest.param(*fault, id=f"{fault[0]}-{fault[2][:40]}") for fault in FAULTS]
)
def test_a_fault_of_each_kind_is_named(files: Copy, name: str, old: str, new: str, rule: Rule) -> None:
    found = files.with_replaced(name, old, new)
    assert rule in {finding.rule for finding in found}, [str(finding) for finding in found]


def test_settings_of_ones_own_that_are_legal_are_taken(files: Copy) -> None:
    own = {
        "AzureWebJobs.reaper.Disabled": "true",
        "AzureFunctionsJobHost__functionTimeout": "00:40:00",
        "TOOLBOX_REQUIRE_TOKEN": "1",
        "TOOLBOX_MAX_WAIT_MS": "100000",
        "SALES_CLIENT_SECRET": "@Microsoft.KeyVault(SecretUri={vaultUri}secrets/sales-client-secret)",
    }
    assert files.lint_with("app-settings.json", json.dumps(own)) == []


def test_a_misspelt_word_is_told_with_the_right_one(files: Copy) -> None:
    (found,) = files.with_replaced("modules/storage.bicep", "allowSharedKeyAccess:", "allowSharedKeyAcess:")
    assert str(found).startswith("infra/azure/modules/storage.bicep:")
    assert found.message.endswith("Did you mean 'allowSharedKeyAccess'?")


def test_a_module_that_nobody_uses_is_told(files: Copy) -> None:
    lost = files.path("modules/lost.bicep")
    lost.write_text("param name string\noutput name string = name\n")
    try:
        assert [(found.file, found.rule) for found in lint(files.root)] == [
            ("infra/azure/modules/lost.bicep", Rule.UNUSED_SYMBOL)
        ]
    finally:
        lost.unlink()


def test_a_secret_parameter_reaches_neither_an_output_nor_a_parameters_file(files: Copy) -> None:
    text = files.text("main.bicep") + "\n@secure()\nparam key string = ''\noutput LEAK string = '${key}'\n"
    assert {found.rule for found in files.lint_with("main.bicep", text)} == {Rule.SECRET}
    main, parameters = files.path("main.bicep"), files.text("main.parameters.json")
    before = main.read_text("utf-8")
    main.write_text(
        before + "\n@secure()\nparam key string\nvar used = key\noutput LENGTH int = length(used)\n"
    )
    try:
        given = parameters.replace('"parameters": {', '"parameters": {"key": {"value": "abc"},', 1)
        assert Rule.SECRET in {found.rule for found in files.lint_with("main.parameters.json", given)}
    finally:
        main.write_text(before)


def test_the_command_prints_findings_and_fails(files: Copy, capsys: pytest.CaptureFixture[str]) -> None:
    from infra.azure.lint.__main__ import main

    assert main([str(files.root)]) == 0
    path = files.path("azure.yaml")
    before = path.read_text("utf-8")
    path.write_text(before.replace("host: function", "host: functions"))
    try:
        assert main([str(files.root)]) == 1
    finally:
        path.write_text(before)
    assert "azure.yaml:1:1: project: services.app.host must be function" in capsys.readouterr().out


def test_a_hook_that_cannot_be_run_is_told(files: Copy) -> None:
    script: Path = files.path("hooks/secrets.sh")
    script.chmod(0o644)
    try:
        assert [found.rule for found in lint(files.root)] == [Rule.PROJECT]
    finally:
        script.chmod(0o755)
