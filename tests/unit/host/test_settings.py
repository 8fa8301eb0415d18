"""Settings, host.json, and what each wrong one says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.host.config import DEFAULT_BODY_LIMIT, HostConfig, body_limit, load_config, parse_timespan
from infra.local.host.errors import HostError
from infra.local.host.settings import (
    DEVELOPMENT_STORAGE,
    apply_values,
    connection_string,
    is_disabled,
    load_json,
    read_values,
    resolve,
)

if TYPE_CHECKING:
    from pathlib import Path


def config(folder: Path, data: Any = None, **environment: str) -> HostConfig:
    """Parse a host.json made of ``data``."""
    (folder / "host.json").write_text(json.dumps({"version": "2.0", **(data or {})}))
    return load_config(folder, environment)


def test_json_with_comments_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('\ufeff{// one\n"a": "http://x /* kept */", /* two\n */ "b": "\\"//"}', encoding="utf-8")
    assert load_json(path) == {"a": "http://x /* kept */", "b": '"//'}


def test_values(tmp_path: Path) -> None:
    path = tmp_path / "local.settings.json"
    path.write_text('{"Values": {"A": "a", "N": 5, "B": true, "E": "", "NULL": null}}')
    assert read_values(path) == {"A": "a", "N": "5", "B": "true", "E": ""}
    environment = {"A": "mine"}
    apply_values(read_values(path), environment)
    assert environment == {"A": "mine", "N": "5", "B": "true", "E": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "local.settings.json is not valid JSON"),
        ("[]", "must hold a JSON object"),
        ('{"IsEncrypted": true}', "encrypted"),
        ('{"Values": {"A": {}}}', "Values.A"),
        ('{"Values": [1]}', "Values in local.settings.json must be an object"),
    ],
)
def test_bad_settings_file(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "local.settings.json"
    path.write_text(text)
    with pytest.raises(HostError, match=message):
        read_values(path)


def test_resolve() -> None:
    assert resolve("a-%X%-%Y.Z%", {"X": "1", "Y.Z": "2"}, "here") == "a-1-2"
    assert resolve("100%", {}, "here") == "100%"
    with pytest.raises(HostError, match="'%GONE%' does not resolve to a value: here needs the setting GONE"):
        resolve("%GONE%", {}, "here")


def test_connection_string() -> None:
    environment = {
        "AzureWebJobsStorage": "UseDevelopmentStorage=true;",
        "AzureWebJobsOther": "x",
        "Id__uri": "y",
    }
    assert connection_string("", environment, "here") == DEVELOPMENT_STORAGE
    assert connection_string("Other", environment, "here") == "x"
    with pytest.raises(HostError, match="here needs a storage connection string in the setting Gone"):
        connection_string("Gone", environment, "here")
    with pytest.raises(HostError, match="Identity-based"):
        connection_string("Id", environment, "here")


@pytest.mark.parametrize(
    ("environment", "disabled"),
    [
        ({}, False),
        ({"AzureWebJobs.f.Disabled": "true"}, True),
        ({"AzureWebJobs_f_Disabled": "1"}, True),
        ({"AzureWebJobs.f.Disabled": "false"}, False),
        ({"AzureWebJobs.g.Disabled": "true"}, False),
    ],
)
def test_is_disabled(environment: dict[str, str], disabled: bool) -> None:
    assert is_disabled("f", environment) is disabled


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:05:00", 300), ("00:00:00.1", 0.1), ("2.01:00:00", 176_400), ("23:59:59", 86_399), ("01:30", 5_400)],
)
def test_timespans(text: str, seconds: float) -> None:
    assert parse_timespan(text, "here") == seconds


@pytest.mark.parametrize("text", ["", "5", "24:00:00", "00:60:00", "00:00:60", "x", "-00:01:00"])
def test_bad_timespans(text: str) -> None:
    with pytest.raises(HostError, match="here must be a time span"):
        parse_timespan(text, "here")


def test_defaults(tmp_path: Path) -> None:
    empty = config(tmp_path)
    assert empty.route_prefix == "api"
    assert empty.function_timeout == 1800
    assert empty.mcp.server_name == "Azure Functions MCP server"
    assert empty.mcp.server_version == "1.0.0"
    assert empty.mcp.instructions is None
    assert not empty.mcp.anonymous
    assert empty.queues.batch_size == 16
    assert empty.queues.new_batch_threshold >= 8
    assert empty.queues.max_polling_interval == 60
    assert empty.queues.max_dequeue_count == 5
    assert empty.queues.visibility_timeout == 0
    assert empty.queues.base64
    development = config(tmp_path, AZURE_FUNCTIONS_ENVIRONMENT="Development")
    assert development.queues.max_polling_interval == 2


def test_values_and_overrides(tmp_path: Path) -> None:
    data = {
        "functionTimeout": "-1",
        "EXTENSIONS": {
            "http": {"RoutePrefix": "/x/"},
            "mcp": {"servername": "s", "system": {"webhookAuthorizationLevel": "anonymous"}},
            "queues": {"batchSize": 1, "newBatchThreshold": 0, "messageEncoding": "None"},
        },
    }
    made = config(
        tmp_path,
        data,
        AzureFunctionsJobHost__extensions__Queues__BatchSize="4",
        AzureFunctionsJobHost__logging__logLevel__default="Warning",
    )
    assert made.function_timeout is None
    assert made.route_prefix == "x"
    assert made.mcp.server_name == "s"
    assert made.mcp.anonymous
    assert made.queues.batch_size == 4
    assert made.queues.new_batch_threshold == 0
    assert not made.queues.base64
    assert made.log_level == "Warning"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"version": "1.0"}, "version"),
        ({"functionTimeout": "00:00:00"}, "at least one second"),
        ({"extensions": 5}, "extensions must be an object"),
        (
            {"extensions": {"queues": {"batchSize": 0}}},
            "extensions.queues.batchSize must be a number from 1 to 32",
        ),
        ({"extensions": {"queues": {"batchSize": "x"}}}, "batchSize"),
        ({"extensions": {"queues": {"maxDequeueCount": 0}}}, "maxDequeueCount must be a number of at least 1"),
        (
            {"extensions": {"queues": {"maxPollingInterval": "00:00:00.05"}}},
            "maxPollingInterval must be at least",
        ),
        ({"extensions": {"queues": {"messageEncoding": "utf8"}}}, "messageEncoding must be base64 or none"),
        ({"extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Function"}}}}, "System or Anonymous"),
    ],
)
def test_bad_values(tmp_path: Path, data: Any, message: str) -> None:
    with pytest.raises(HostError, match=message):
        config(tmp_path, data)


def test_body_limit() -> None:
    assert body_limit({}) == DEFAULT_BODY_LIMIT == 104_857_600
    assert body_limit({"FUNCTIONS_REQUEST_BODY_SIZE_LIMIT": "5"}) == 5
    with pytest.raises(HostError, match="number of bytes"):
        body_limit({"FUNCTIONS_REQUEST_BODY_SIZE_LIMIT": "5MB"})
