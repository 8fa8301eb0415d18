"""`python -m infra.azure.lint [REPOSITORY]`: prints every finding; the exit code is 1 if there is one."""

from __future__ import annotations

import sys
from pathlib import Path

from infra.azure.lint.files import Project, check_file
from infra.azure.lint.project import check_azd, check_parameters
from infra.azure.lint.report import Finding, Place, Report, Rule
from infra.azure.lint.settings import OWN_FILE, app_settings, check_own_settings, check_settings, documented


def lint(root: Path) -> list[Finding]:
    """All findings of a repository whose Bicep files stand in infra/azure, in order."""
    root = root.resolve()
    folder = root / "infra" / "azure"
    project = Project(root)
    paths = sorted(folder.rglob("*.bicep"))
    known = documented(root / "docs" / "settings.md")
    for path in paths:
        check_file(project, path)
        tree = project.tree(path)
        if tree is not None:
            check_settings(tree, Report(path, root, project.findings), known)
    main = folder / "main.bicep"
    for path in paths:
        if path != main and path not in project.used:
            Report(path, root, project.findings).add(Place(), Rule.UNUSED_SYMBOL, "no file uses this module")
    own, parameters, azd = folder / OWN_FILE, folder / "main.parameters.json", root / "azure.yaml"
    trees = [tree for path in paths if (tree := project.tree(path)) is not None]
    set_already = {name for tree in trees for name in app_settings(tree)}
    check_own_settings(own, Report(own, root, project.findings), known, set_already)
    main_tree = project.tree(main) if main.is_file() else None
    if main_tree is not None:
        check_parameters(parameters, main_tree, Report(parameters, root, project.findings))
    check_azd(azd, root, trees, Report(azd, root, project.findings))
    return sorted(project.findings)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[3]
    findings = lint(root)
    for finding in findings:
        sys.stdout.write(f"{finding}\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
