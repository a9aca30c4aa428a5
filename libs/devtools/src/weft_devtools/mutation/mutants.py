"""What can be changed in a source file: one token in a function at a time, so that types hold and a rule doesn't.

The operators are mutmut's. Left out are those whose mutants strict types refuse or that only change words that people
read: an argument or a value that becomes None, texts of several words, annotations, decorators. Added is one: a
condition without an operator is negated.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst
from libcst import matchers
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

_Operator = Callable[[Any], Any]
_DECLARING = frozenset({"TypeVar", "NewType", "ParamSpec", "cast"})
"""Calls whose text is for the type checker alone."""


def _one_word(node: cst.SimpleString) -> Iterator[cst.BaseExpression]:
    value = node.evaluated_value
    if isinstance(value, str) and value and value.replace("_", "").replace("-", "").isalnum():
        yield cst.SimpleString(repr(value + "_"))


def _negation(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(test, cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        yield cst.UnaryOperation(cst.Not(), test)


def _may_be_dropped(node: cst.Match) -> Iterator[cst.MatchCase]:
    """Each of its cases, where there are several; the one for all others is no rule where it does nothing."""
    for case in node.cases if len(node.cases) > 1 else ():
        if not (isinstance(case.pattern, cst.MatchAs) and case.pattern.pattern is None and _does_nothing(case)):
            yield case


def _does_nothing(case: cst.MatchCase) -> bool:
    """It passes, or says that all cases were named."""
    nothing = matchers.Pass() | matchers.Name("assert_never")
    return bool(matchers.findall(case.body, nothing))


_OPERATORS: tuple[tuple[type[cst.CSTNode], _Operator], ...] = (
    (cst.BaseNumber, mutators.operator_number),
    (cst.SimpleString, _one_word),
    (cst.Name, mutators.operator_name),
    (cst.AugAssign, mutators.operator_augmented_assignment),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.Call, mutators.operator_symmetric_string_methods_swap),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.IfExp, mutators.operator_if_exp),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file."""

    package: str
    file: str
    """Relative to the tree's root."""
    line: int
    """The first line that differs, from 1."""
    before: str
    """That line, without its indentation."""
    after: str
    """What stands in its place; nothing where lines were dropped."""
    occurrence: int
    """Which of several with the same words, from 0."""
    text: str = field(repr=False)
    """The whole file, changed."""

    @property
    def key(self) -> str:
        """What it is, wherever in its file the line stands."""
        return "\0".join((self.file, self.before, self.after, str(self.occurrence)))


def mutants(root: Path, package: str, file: str) -> list[Mutant]:
    """All mutants of a file, in the file's order."""
    source = (root / file).read_text()
    wrapper = MetadataWrapper(cst.parse_module(source))
    finder = _Finder()
    wrapper.visit(finder)
    found: list[Mutant] = []
    said: dict[tuple[str, str], int] = {}
    for old, new, place in finder.found:
        text = _replaced(wrapper.module, source, old, new, place) if new is not None else _without(source, old, place)
        if text == source:
            continue
        line, before, after = _difference(source, text)
        occurrence = said.get((before, after), 0)
        said[before, after] = occurrence + 1
        found.append(Mutant(package, file, line, before, after, occurrence, text))
    return found


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[cst.CSTNode, cst.CSTNode | None, CodeRange]] = []
        """What is changed, into what (None: it is dropped), and where it stands."""
        self._functions = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _is_declaration(node):
            return False
        if self._functions:
            self._look(node)
        self._functions += isinstance(node, cst.FunctionDef)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if not _is_declaration(original_node):
            self._functions -= isinstance(original_node, cst.FunctionDef)

    def _look(self, node: cst.CSTNode) -> None:
        for kind, operator in _OPERATORS:
            if isinstance(node, kind):
                self._add(node, operator)
        if isinstance(node, cst.If | cst.While | cst.CompIf):
            self._add(node.test, _negation)
        if isinstance(node, cst.Match):
            for case in _may_be_dropped(node):
                self._add(case, lambda _: (None,))

    def _add(self, node: cst.CSTNode, operator: _Operator) -> None:
        place = self.get_metadata(PositionProvider, node, None)
        if isinstance(place, CodeRange):
            self.found.extend((node, new, place) for new in operator(node))


def _is_declaration(node: cst.CSTNode) -> bool:
    """What says nothing at run time, or is said where it would break every import."""
    match node:
        case cst.Annotation() | cst.Decorator() | cst.Import() | cst.ImportFrom() | cst.FormattedString():
            return True
        case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()):
            return True  # a docstring
        case cst.Subscript(value=cst.Name(value="Literal" | "Annotated")):
            return True
        case cst.Call(func=cst.Name(value=name)):
            return name in _DECLARING
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value="__all__"))]):
            return True
        case cst.If(test=cst.Name(value="TYPE_CHECKING")):
            return True
        case _:
            return False


def _replaced(module: cst.Module, source: str, old: cst.CSTNode, new: cst.CSTNode, place: CodeRange) -> str:
    lines = source.splitlines(keepends=True)
    first, last = place.start.line - 1, place.end.line - 1
    head, tail = lines[first][: place.start.column], lines[last][place.end.column :]
    if isinstance(old, cst.BaseExpression) and isinstance(new, cst.BaseExpression) and old.lpar and new.lpar:
        new = new.with_changes(lpar=new.lpar[1:], rpar=new.rpar[:-1])  # the place is within them
    words = module.code_for_node(new)
    if isinstance(old, cst.BaseCompOp):
        words = words.strip()
    return "".join((*lines[:first], head, words, tail, *lines[last + 1 :]))


def _without(source: str, old: cst.CSTNode, place: CodeRange) -> str:
    """The lines of a case gone, with the comments above it and at its end."""
    assert isinstance(old, cst.MatchCase)
    footer = old.body.footer if isinstance(old.body, cst.IndentedBlock) else ()
    lines = source.splitlines(keepends=True)
    return "".join((*lines[: place.start.line - 1 - len(old.leading_lines)], *lines[place.end.line + len(footer) :]))


def _difference(old: str, new: str) -> tuple[int, str, str]:
    """The first line that differs, how it read, and what is there now."""
    was, now = old.splitlines(), new.splitlines()
    first = next((i for i, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), len(now))
    same = 0
    while same < min(len(was), len(now)) - first and was[-1 - same] == now[-1 - same]:
        same += 1
    return first + 1, was[first].strip(), " ".join(line.strip() for line in now[first : len(now) - same])
