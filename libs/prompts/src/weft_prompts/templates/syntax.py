"""A template's text as a tree that may be compiled: its size is bounded, and its parts say what they cost."""

from collections.abc import Iterator
from typing import Final, cast

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer

from weft_prompts.templates import operators
from weft_prompts.templates.refusals import TemplateRefused

MOST_CHARACTERS: Final = 128 << 10
"""Of a template. The largest of llama.cpp's 70 has 16,738."""
MOST_NODES: Final = 30_000
MOST_DEPTH: Final = 80
MOST_NAMES: Final = 1000
"""Variables that a template assigns. Jinja2's compiler copies their table at each `if`."""
REFUSED: Final[dict[type[nodes.Node], str]] = {
    nodes.Block: "block",
    nodes.Extends: "extends",
    nodes.FromImport: "from … import",
    nodes.Import: "import",
    nodes.Include: "include",
    nodes.ScopedEvalContextModifier: "autoescape",
}


class GenerationBlocks(Extension):
    """`{% generation %}`: marks what the model wrote, for those who train. Rendered, it is what it holds."""

    tags = frozenset({"generation"})  # pyright: ignore[reportAssignmentType]  jinja2 reads it only

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def parsed(environment: Environment, text: str) -> nodes.Template:
    """The tree, with calls where something costs. Raises TemplateRefused."""
    if len(text) > MOST_CHARACTERS:
        raise TemplateRefused(f"the chat template has {len(text)} characters: want at most {MOST_CHARACTERS}")
    try:
        tree = environment.parse(text)
        check(tree)
        written: nodes.Node = _Priced(environment).visit(tree)
    except TemplateSyntaxError as error:
        raise TemplateRefused(f"the chat template is none: line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise TemplateRefused(f"the chat template is nested more than {MOST_DEPTH} deep") from None
    except ValueError as error:
        if isinstance(error, TemplateRefused):
            raise
        raise TemplateRefused(f"the chat template is none: {error}") from None
    assert isinstance(written, nodes.Template)
    _charge(written.body, written.body)
    written.set_environment(environment)
    return written


def check(tree: nodes.Template) -> None:
    """Raises TemplateRefused for a tree that is too large, too deep, or reaches out of itself."""
    waiting: list[tuple[nodes.Node, int]] = [(tree, 0)]
    count, assigned = 0, set[str]()
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > MOST_NODES:
            raise TemplateRefused(f"the chat template has more than {MOST_NODES} parts")
        if depth > MOST_DEPTH:
            raise TemplateRefused(f"the chat template is nested more than {MOST_DEPTH} deep")
        if type(node) in REFUSED:
            raise TemplateRefused(f"the chat template has `{REFUSED[type(node)]}`: want one that stands alone")
        if isinstance(node, nodes.Name):
            assigned.add(node.name)
        if len(assigned) > MOST_NAMES:
            raise TemplateRefused(f"the chat template has more than {MOST_NAMES} variables")
        waiting += ((child, depth + 1) for child in node.iter_child_nodes())


class _Priced(NodeTransformer):
    """Puts our operators in place of what jinja2 would compile to Python's own."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        if node.test is not None:
            node.test = _call(operators.TURN, node.test, nodes.Const(1 + _weight([node.test])[0]), nodes.Const(0))
        _charge(node.body, node.body)
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        self.generic_visit(node)
        _charge(node.body, [*node.body, *node.defaults])
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        self.generic_visit(node)
        _charge(node.body, [*node.body, *node.defaults])
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _call(operators.CONCATENATE, *node.nodes)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        if len(node.ops) == 1 and node.ops[0].op in ("eq", "ne") and (_small(node.expr) or _small(node.ops[0].expr)):
            return node  # as cheap as the constant is short
        pairs = [part for each in node.ops for part in (nodes.Const(each.op), each.expr)]
        return _call(operators.COMPARE, node.expr, *pairs)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            ends = (node.arg.start, node.arg.stop, node.arg.step)
            return _call(operators.CUT, node.node, *(end or nodes.Const(None) for end in ends))
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Node:
        self.generic_visit(node)
        if not _small(node.key):
            node.key = _call(operators.KEY, node.key)
        return node


def _small(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const)


def _call(name: str, value: nodes.Node, *words: nodes.Node) -> nodes.Filter:
    return nodes.Filter(cast(nodes.Expr, value), name, list(words), [], None, None)


def _charge(body: list[nodes.Node], counted: list[nodes.Node]) -> None:
    """Have a body say what its turn costs at most, before it does anything."""
    steps, characters = _weight(counted)
    price = _call(operators.TURN, nodes.Const(None), nodes.Const(steps), nodes.Const(characters))
    body.insert(0, nodes.ExprStmt(price))


def _weight(body: list[nodes.Node]) -> tuple[int, int]:
    """Nodes and characters of text of a body, without the bodies in it that say theirs themselves."""
    steps, characters = 1, 0
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        steps += 1
        if isinstance(node, nodes.TemplateData):
            characters += len(node.data)
        waiting += _inline(node)
    return steps, characters


def _inline(node: nodes.Node) -> Iterator[nodes.Node]:
    own: dict[type[nodes.Node], tuple[str, ...]] = {
        nodes.For: ("body", "test"),
        nodes.Macro: ("body", "defaults"),
        nodes.CallBlock: ("body", "defaults"),
    }
    yield from node.iter_child_nodes(exclude=own.get(type(node), ()))
