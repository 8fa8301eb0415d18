"""The names that a file declares, and what is behind each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from infra.azure.lint import syntax
from infra.azure.lint.report import Report, Rule, hint
from infra.azure.lint.types import Type


@dataclass(slots=True)
class Symbol:
    declared: syntax.Declared
    used: bool = False
    #: What reading it gives; None while nobody has asked.
    type: Type | None = None
    #: Whether its type is being looked for, which a name that stands for itself never ends.
    busy: bool = False


@dataclass(slots=True)
class Symbols:
    report: Report
    of_file: dict[str, Symbol] = field(default_factory=dict)
    #: Variables of loops and lambdas, innermost last.
    local: list[dict[str, Type]] = field(default_factory=list)

    def declare(self, statements: Iterable[syntax.Statement]) -> None:
        outputs: set[str] = set()
        for statement in statements:
            if isinstance(statement, syntax.Scope):
                continue
            known = outputs if isinstance(statement, syntax.Output) else self.of_file
            if statement.name in known:
                message = f"'{statement.name}' is declared twice"
                self.report.add(statement.place, Rule.DUPLICATE_SYMBOL, message)
            if isinstance(statement, syntax.Output):
                outputs.add(statement.name)
            else:
                self.of_file[statement.name] = Symbol(statement)

    @contextmanager
    def within(self, names: dict[str, Type]) -> Iterator[None]:
        self.local.append(names)
        try:
            yield
        finally:
            self.local.pop()

    def find_local(self, name: str) -> Type | None:
        return next((names[name] for names in reversed(self.local) if name in names), None)

    def find(self, node: syntax.Name) -> Symbol | None:
        """The symbol, which counts as used from now on. A name that is not declared is a finding."""
        found = self.of_file.get(node.name)
        if found is None:
            known = [*self.of_file, *(name for names in self.local for name in names)]
            message = f"nothing is called '{node.name}'." + hint(node.name, known)
            self.report.add(node.place, Rule.UNKNOWN_SYMBOL, message)
            return None
        found.used = True
        return found

    def tell_unused(self) -> None:
        """A resource or module does something by itself; the others are there to be read."""
        for name, symbol in self.of_file.items():
            declared = symbol.declared
            acts = isinstance(declared, syntax.Module) or (
                isinstance(declared, syntax.Resource) and not declared.existing
            )
            if not acts and not symbol.used:
                self.report.add(declared.place, Rule.UNUSED_SYMBOL, f"'{name}' is used nowhere")
