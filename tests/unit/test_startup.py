"""The app does not start with what it cannot work with, and says which setting it is."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from shared import settings as app_settings
from shared import startup
from shared.errors import SettingsError
from shared.settings import Settings
from shared.tool import tool
from shared.tool.decorator import declared
from shared.tool.spec import ToolSpec
from shared.toolbox import Toolbox

ROOT = Path(__file__).resolve().parents[2]
KEY = base64.b64encode(bytes(range(32))).decode()
EMULATOR = "UseDevelopmentStorage=true"
COMPLETE = {"AzureWebJobsStorage": EMULATOR, "TOOLBOX_SEAL_KEY": KEY, "MCP_AUTH_TOKEN": "some-token"}
SOUND: dict[str, Any] = {
    "version": "2.0",
    "functionTimeout": "00:35:00",
    "extensionBundle": {
        "id": "Microsoft.Azure.Functions.ExtensionBundle",
        "version": "[4.36.0, 5.0.0)",
    },
    "extensions": {"http": {"routePrefix": ""}, "queues": {"messageEncoding": "base64"}},
}


@tool(execution_modes=("inline", "headless"))
def exports(text: str) -> str:
    """Runs as a job, too."""
    return text


@tool
def quick(text: str) -> str:
    """Runs inline only."""
    return text


def spec_of(function: Any) -> ToolSpec:
    found = declared(function)
    assert found is not None
    spec: ToolSpec = found.spec
    return spec


def settings(**changed: str | None) -> Settings:
    environ = {name: value for name, value in {**COMPLETE, **changed}.items() if value is not None}
    return app_settings.load(environ)


def host(tmp_path: Path, environ: Mapping[str, str] | None = None, **changed: Any) -> list[startup.Finding]:
    path = tmp_path / "host.json"
    path.write_text(json.dumps({**SOUND, **changed}))
    return startup.host_findings(path, environ or {})


class TestJobs:
    def test_nothing_is_said_when_all_is_there(self, caplog: pytest.LogCaptureFixture) -> None:
        startup.check_jobs(settings(), [spec_of(exports)])
        assert not caplog.records

    @pytest.mark.parametrize("missing", ["AzureWebJobsStorage", "TOOLBOX_SEAL_KEY"])
    def test_a_tool_that_runs_as_a_job_needs_it(self, missing: str) -> None:
        with pytest.raises(SettingsError, match=f"^{missing} is not set.*exports") as caught:
            startup.check_jobs(settings(**{missing: None}), [spec_of(quick), spec_of(exports)])
        assert "quick" not in caught.value.message

    def test_all_that_is_missing_is_said_at_once(self) -> None:
        with pytest.raises(SettingsError) as caught:
            startup.check_jobs(settings(AzureWebJobsStorage=None, TOOLBOX_SEAL_KEY=None), [spec_of(exports)])
        assert "AzureWebJobsStorage is not set" in caught.value.message
        assert "TOOLBOX_SEAL_KEY is not set" in caught.value.message

    def test_inline_tools_need_neither(self) -> None:
        startup.check_jobs(settings(AzureWebJobsStorage=None, TOOLBOX_SEAL_KEY=None), [spec_of(quick)])

    def test_no_token_is_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        startup.check_jobs(settings(MCP_AUTH_TOKEN=None), [])
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert record.getMessage().startswith("MCP_AUTH_TOKEN and MCP_AUTH_TOKENS are not set")

    def test_a_token_that_can_be_guessed_is_a_warning_where_data_is_real(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        real = "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=a2V5;EndpointSuffix=core.windows.net"
        tokens = json.dumps({"ana": ["q" * 16, "short-sentinel"], "eve": "e" * 16})
        given = {"MCP_AUTH_TOKEN": "d" * 16, "MCP_AUTH_TOKENS": tokens}
        startup.check_jobs(settings(**given), [])
        assert not caplog.records
        startup.check_jobs(settings(AzureWebJobsStorage=real, **given), [])
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert "a token of owner 'ana' has fewer than 16 characters" in record.getMessage()
        assert "sentinel" not in record.getMessage()


class TestHostJson:
    def test_that_of_the_project_is_sound(self) -> None:
        assert startup.host_findings(ROOT / "host.json", {}) == []

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            (
                {"extensions": {"http": {"routePrefix": ""}, "queues": {"messageEncoding": "none"}}},
                "messageEncoding",
            ),
            ({"extensions": {"http": {"routePrefix": "api"}}}, "routePrefix"),
            ({"extensions": {}}, "routePrefix"),  # the host's own default is "api"
            ({"functionTimeout": "00:01:00"}, "functionTimeout"),
            ({"functionTimeout": "00:01:09"}, "functionTimeout"),
            ({"extensionBundle": {"version": "[3.*, 4.0.0)"}}, "extensionBundle"),
            ({"extensionBundle": {"version": "[4.0.0, 4.36.0)"}}, "extensionBundle"),
            ({"extensionBundle": {"version": "[4.35.0]"}}, "extensionBundle"),
            ({"extensionBundle": {"version": "latest"}}, "extensionBundle"),
            ({"extensionBundle": {"version": "[4.36*, 5.0.0)"}}, "extensionBundle"),
            ({"extensionBundle": {"version": "[4.36.0, five)"}}, "extensionBundle"),
            ({"extensionBundle": {"version": "[4.36.0, 5.0.0"}}, "extensionBundle"),
            ({"extensionBundle": {}}, "extensionBundle"),
        ],
    )
    def test_what_stops_the_start_is_named(self, tmp_path: Path, changed: Any, said: str) -> None:
        (finding,) = host(tmp_path, **changed)
        assert finding.stops
        assert said in finding.text
        assert "host.json" in finding.text

    @pytest.mark.parametrize("version", ["[4.36.0, 5.0.0)", "[4.36.0]", "[4.40.1, 6.0.0)", "[4.36.0, )"])
    def test_bundles_that_will_do(self, tmp_path: Path, version: str) -> None:
        assert host(tmp_path, extensionBundle={"version": version}) == []

    @pytest.mark.parametrize("bundle", [{"version": "[4.*, 5.0.0)"}, {"version": "[4.0.0, 4.36.0]"}, None])
    def test_a_bundle_that_may_be_too_old_is_a_warning(self, tmp_path: Path, bundle: Any) -> None:
        (finding,) = host(tmp_path, extensionBundle=bundle)
        assert not finding.stops
        assert "extensionBundle" in finding.text

    def test_an_app_setting_overrides_the_file_as_in_the_host(self, tmp_path: Path) -> None:
        broken = {"AzureFunctionsJobHost__extensions__queues__messageEncoding": "none"}
        assert [finding.stops for finding in host(tmp_path, broken)] == [True]
        mended = {"AZUREFUNCTIONSJOBHOST__EXTENSIONS__HTTP__ROUTEPREFIX": ""}
        assert host(tmp_path, mended, extensions={"http": {"routePrefix": "api"}}) == []
        short = {"AzureFunctionsJobHost__functionTimeout": "00:00:30"}
        assert ["functionTimeout" in finding.text for finding in host(tmp_path, short)] == [True]

    def test_a_deadline_that_the_host_cuts_is_told(self, tmp_path: Path) -> None:
        asked = {"TOOLBOX_MAX_TIMEOUT_MS": "1200000"}
        assert host(tmp_path, asked) == []
        (finding,) = host(tmp_path, asked, functionTimeout="00:10:00")
        assert not finding.stops
        assert finding.text == (
            "TOOLBOX_MAX_TIMEOUT_MS is 1200000, and functionTimeout of host.json allows 540000: that counts"
        )

    def test_comments_are_told_since_the_app_cannot_read_them(self, tmp_path: Path) -> None:
        path = tmp_path / "host.json"
        path.write_text('{"version": "2.0" /* as the host allows */}')
        (finding,) = startup.host_findings(path, {})
        assert not finding.stops
        path.unlink()
        assert startup.host_findings(path, {}) == []

    def test_everything_that_is_wrong_is_said_at_once(self, tmp_path: Path) -> None:
        path = tmp_path / "host.json"
        path.write_text(
            json.dumps({"functionTimeout": "00:00:10", "extensions": {"http": {"routePrefix": "x"}}})
        )
        with pytest.raises(SettingsError) as caught:
            startup.check_host(path, {})
        assert "routePrefix" in caught.value.message
        assert "functionTimeout" in caught.value.message


class TestToolbox:
    """The whole app, as its host would load it."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "host.json").write_text(json.dumps(SOUND))
        # A package of its own name: `tools` is that of the repository.
        monkeypatch.syspath_prepend(tmp_path)
        quiet = tmp_path / f"tools_of_{tmp_path.name}" / "quiet_startup_tool"
        quiet.mkdir(parents=True)
        (quiet / "__init__.py").write_text(
            "from shared.tool import tool\n\n\n"
            "@tool(execution_modes=('headless',))\n"
            'def quiet_startup_tool(text: str) -> str:\n    """Runs as a job."""\n    return text\n'
        )
        return tmp_path

    def start(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **environ: str) -> Toolbox:
        monkeypatch.setattr(app_settings, "current", lambda: app_settings.load(environ))
        return Toolbox(folder / f"tools_of_{folder.name}")

    def test_it_starts_with_all_settings(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = self.start(folder, monkeypatch, **COMPLETE)
        assert "quiet_startup_tool" in [one.name for one in found.tools]

    def test_no_seal_key_stops_it(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(SettingsError, match=r"TOOLBOX_SEAL_KEY is not set.*quiet_startup_tool"):
            self.start(folder, monkeypatch, AzureWebJobsStorage=EMULATOR)

    def test_a_host_json_that_would_lose_messages_stops_it(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        body = {**SOUND, "extensions": {"http": {"routePrefix": ""}, "queues": {"messageEncoding": "none"}}}
        (folder / "host.json").write_text(json.dumps(body))
        with pytest.raises(SettingsError, match="messageEncoding"):
            self.start(folder, monkeypatch, **COMPLETE)

    def test_all_that_is_wrong_is_said_at_once(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "host.json").write_text(json.dumps({**SOUND, "functionTimeout": "00:01:00"}))
        wrong = {
            "AzureWebJobsStorage": EMULATOR,
            "TOOLBOX_SEAL_KEY": "c2hvcnQ=",
            "MCP_AUTH_TOKEN": " sentinel ",
            "MCP_AUTH_TOKENS": "[1]",
            "TOOLBOX_MAX_WAIT_MS": "soon",
            "TOOLBOX_REQUIRE_TOKEN": "maybe",
            "CONNECTIONS": "{",
            "TOOLBOX_UPSTREAM_POLICY": "{",
        }
        for name, value in wrong.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SettingsError) as caught:
            self.start(folder, monkeypatch, **wrong)
        lines = caught.value.message.splitlines()
        named = [name for line in lines for name in wrong if line.split(" ")[0].rstrip(":") == name]
        assert sorted(named) == sorted(set(wrong) - {"AzureWebJobsStorage"}), lines
        assert len([line for line in lines if line.startswith("functionTimeout of host.json")]) == 1
        assert len(lines) == len(wrong)
        assert "sentinel" not in caught.value.message

    def test_what_only_the_tools_can_tell_is_said_with_the_rest(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CONNECTIONS", "{")
        with pytest.raises(SettingsError) as caught:
            self.start(folder, monkeypatch, AzureWebJobsStorage=EMULATOR)
        connections, seal_key = caught.value.message.splitlines()
        assert connections.startswith("CONNECTIONS")
        assert seal_key.startswith("TOOLBOX_SEAL_KEY is not set")

    def test_a_lock_file_that_cannot_be_read_costs_its_tools_only_and_is_told(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        (folder / "upstream.lock.json").write_text("{")
        found = self.start(folder, monkeypatch, **COMPLETE)
        assert "quiet_startup_tool" in [one.name for one in found.tools]
        (fault,) = found.runtime.found.faults
        assert fault.folder == "upstream.lock.json"
        assert "upstream.lock.json" in caplog.text
        assert "upstream sync" in caplog.text
