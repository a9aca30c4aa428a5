"""Templates that ask for more than they may end with a sentence, after a bounded number of steps."""

from typing import Any

import pytest
from weft_prompts.templates import Bounds, Chat, Template, TemplateFailed, TemplateRefused
from weft_prompts.templates.refusals import MOST_WORDS

_SMALL = Bounds(steps=100_000, text=100_000, made=1_000_000, items=10_000)
_USER = {"role": "user", "content": "hello"}


def _render(text: str, *, bounds: Bounds = _SMALL, extra: dict[str, Any] | None = None) -> str:
    return Template(text).render(Chat([_USER], extra=extra or {}), bounds=bounds)


_TOO_MUCH = {
    "a text repeated": "{{ 'x' * 10**9 }}",
    "a text repeated from the left": "{{ 10**9 * 'x' }}",
    "a list repeated": "{{ ([1] * 10**8)|length }}",
    "doubling by ~": "{% set n = namespace(a='x') %}{% for i in range(64) %}{% set n.a = n.a ~ n.a %}{% endfor %}",
    "doubling by +": "{% set n = namespace(a='x') %}{% for i in range(64) %}{% set n.a = n.a + n.a %}{% endfor %}",
    "a list doubling": "{% set n = namespace(a=[1]) %}{% for i in range(64) %}{% set n.a = n.a + n.a %}{% endfor %}",
    "a list of itself": "{% set n = namespace(a=1) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}"
    "{{ n.a }}",
    "a deep list as JSON": "{% set n = namespace(a=1) %}{% for i in range(900) %}{% set n.a = [n.a] %}{% endfor %}"
    "{{ n.a|tojson }}",
    "two wide lists compared": "{% set n = namespace(a=1, b=1) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}"
    "{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
    "loops in loops": "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}",
    "a loop that lets nothing through": "{% for i in range(9999) %}"
    "{% for j in range(9999) if false %}{% endfor %}{% endfor %}",
    "a long body": "{% for i in range(9999) %}" + "{% set a = messages %}" * 200 + "{% endfor %}",
    "a long text in a loop": "{% set s %}{% for i in range(9999) %}" + "x" * 10_000 + "{% endfor %}{% endset %}",
    "a range": "{{ range(10**8)|list|length }}",
    "a range past all": "{{ range(10**30)|length }}",
    "a power": "{{ 2 ** 1000 ** 1000 }}",
    "a large power": "{{ 2 ** (10 ** 9) }}",
    "powers in a loop": "{% set n = namespace(a=9) %}{% for i in range(99) %}{% set n.a = n.a * n.a %}{% endfor %}",
    "center": "{{ 'x'|center(10**9) }}",
    "the method center": "{{ 'x'.center(10**9) }}",
    "zfill": "{{ 'x'.zfill(10**9) }}",
    "ljust": "{{ 'x'.ljust(10**9, 'y') }}",
    "a wide format": "{{ '{:1000000000}'.format(1) }}",
    "a wide format by a value": "{{ '{:{w}}'.format(1, w=10**9) }}",
    "a wide format of a dictionary": "{{ '{a:999999999}'.format_map({'a': 1}) }}",
    "a wide %": "{{ '%1000000000d' % 1 }}",
    "a wide % by a value": "{{ '%*d' % (10**9, 1) }}",
    "a precise %": "{{ '%.1000000000f' % 1.5 }}",
    "the filter format": "{{ '%999999999s'|format('x') }}",
    "many fields": "{{ ('{0}' * 5000).format('x' * 5000) }}",
    "many % of names": "{{ ('%(a)s' * 5000) % {'a': 'x' * 5000} }}",
    "replace": "{{ ('x' * 5000).replace('x', 'y' * 5000) }}",
    "the filter replace": "{{ ('x' * 5000)|replace('x', 'y' * 5000) }}",
    "replace of nothing": "{{ ('x' * 5000)|replace('', 'y' * 5000) }}",
    "join": "{{ ('y' * 5000).join('x' * 5000) }}",
    "the filter join": "{{ ([1] * 5000)|join('y' * 5000) }}",
    "indent": "{{ ('a\n' * 5000)|indent(10**9) }}",
    "indent by a text": "{{ ('a\n' * 5000)|indent('x' * 900) }}",
    "indented JSON": "{{ [1]|tojson(indent=10**9) }}",
    "round": "{{ 5|round(-(10**9)) }}",
    "sum of lists": "{{ ([[1] * 5000] * 5000)|sum(start=[]) }}",
    "a macro without end": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "macros that double": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "a macro's text that doubles": "{% macro f(x) %}{{ x }}{{ x }}{% endmacro %}{% set n = namespace(a='x') %}"
    "{% for i in range(64) %}{% set n.a = f(n.a) %}{% endfor %}",
    "a recursive loop without end": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "searches": "{% set s = 'x' * 50000 %}{% for i in range(9999) %}{{ 'y' in s }}{% endfor %}",
    "counts": "{% set s = 'x' * 50000 %}{% for i in range(9999) %}{{ s.count('y') }}{% endfor %}",
    "splits": "{% set s = ' ' * 9000 %}{% for i in range(9999) %}{% set x = s.split(' ') %}{% endfor %}",
    "slices": "{% set s = [1] * 9000 %}{% for i in range(9999) %}{% set x = s[1:] %}{% endfor %}",
    "filters that drop all": "{% set s = [1] * 9000 %}{% for i in range(999) %}{{ s|select('none')|list }}{% endfor %}",
    "sorts": "{% set s = range(9000)|list %}{% for i in range(99) %}{% set x = s|sort(reverse=true) %}{% endfor %}",
    "JSON of JSON": "{% set n = namespace(a='\"') %}{% for i in range(64) %}{% set n.a = n.a|tojson %}{% endfor %}",
    "output": "{% for i in range(9999) %}{{ messages[0].content * 20 }}{% endfor %}",
}


@pytest.mark.parametrize("text", _TOO_MUCH.values(), ids=_TOO_MUCH.keys())
def test_a_template_that_makes_too_much_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(TemplateRefused) as refused:
        _render(text)
    assert str(refused.value).startswith("the chat template ")
    assert len(str(refused.value)) <= MOST_WORDS


_ESCAPES = [
    "{{ messages.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages['__class__'] }}",
    "{{ messages|attr('__class__') }}",
    "{{ raise_exception.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ namespace()['__class__'] }}",
    "{{ namespace(__class__=1) }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ joiner().__class__ }}",
    "{{ self.__init__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ loop.__class__ }}{% for m in messages %}{{ loop.__init__ }}{% endfor %}",
    "{% macro f() %}{% endmacro %}{{ f.__init__.__globals__ }}",
    "{% macro f() %}{% endmacro %}{{ f._func }}",
    "{{ '{0.__class__}'.format(messages) }}",
    "{{ '{0[__class__]}'.format(namespace(a=1)) }}",
    "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "{{ ''|attr('format')('{0.__class__}') }}{{ '{0.__class__}'|attr('format')(1) }}",
    "{{ [messages]|map(attribute='__class__')|list }}",
    "{{ [messages]|map('attr', '__class__')|list }}",
    "{{ [messages]|sort(attribute='__class__') }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update({'role': 'x'}) }}",
    "{{ messages[0].pop('role') }}",
    "{{ [1]|map('(turn)', -1000000, 0)|list }}",
    "{{ [1]|select('(turn)')|list }}",
    "{{ 'x'.encode() .decode }}{{ 'x'.encode('utf-8').hex() }}",
    "{{ range.__call__ }}",
    "{{ lipsum() }}",
    "{{ (1).to_bytes(10**9) }}",
    "{% include 'x' %}",
    "{% import 'x' as x %}",
    "{% from 'x' import y %}",
    "{% extends 'x' %}",
    "{% block x %}{% endblock %}",
    "{% autoescape true %}{% endautoescape %}",
    "{{ [1, 2]|random }}",
    "{{ 'x'|pprint }}",
    "{{ messages[0].get }}",
    "{{ messages|attr }}",
]


@pytest.mark.parametrize("text", _ESCAPES)
def test_a_template_reaches_nothing_but_its_values(text: str) -> None:
    with pytest.raises((TemplateRefused, TemplateFailed)):
        _render(text)


_NO_TEMPLATES = {
    "a line that ends early": "{% if",
    "an unknown tag": "{% nothing %}",
    "brackets in brackets": "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "lists in lists": "{{ " + "[" * 100 + "]" * 100 + " }}",
    "nots": "{{ " + "not " * 5000 + "x }}",
    "signs": "{{ " + "-" * 5000 + "1 }}",
    "sums": "{{ " + "1+" * 5000 + "1 }}",
    "attributes": "{{ a" + ".a" * 5000 + " }}",
    "ifs in ifs": "{% if a %}" * 200 + "{% endif %}" * 200,
    "loops in loops": "{% for a in b %}" * 60 + "{% endfor %}" * 60,
    "many parts": "{{ [" + "a," * 40_000 + "] }}",
    "many variables": "".join(f"{{% set a{n} = 1 %}}" for n in range(2000)),
    "many characters": "x" * 200_000,
    "a number without end": "{{ " + "9" * 5000 + " }}",
    "a break without a loop": "{% break %}",
    "a filter that isn't": "{{ 'x'|nothing }}",
}


@pytest.mark.parametrize("text", _NO_TEMPLATES.values(), ids=_NO_TEMPLATES.keys())
def test_what_is_no_template_or_too_large_to_compile_is_refused(text: str) -> None:
    with pytest.raises(TemplateRefused, match="chat template"):
        _render(text, bounds=Bounds())


def test_nothing_is_computed_before_it_is_rendered() -> None:
    # a compiler that folds constants would make a gigabyte of it
    assert _render("{% if false %}{{ 'x' * 10**9 }}{{ 9 ** 9 ** 9 }}{% endif %}ok") == "ok"


def test_the_templates_own_words_reach_the_client_bounded_and_on_one_line() -> None:
    with pytest.raises(TemplateFailed, match="roles must alternate") as failed:
        _render("{{ raise_exception('roles must\n alternate\x00' ~ 'x' * 9000) }}")
    assert failed.value.said
    assert len(str(failed.value)) <= MOST_WORDS
    assert str(failed.value).isprintable()


def test_an_error_of_the_template_itself_is_told_from_its_own_words() -> None:
    with pytest.raises(TemplateFailed) as failed:
        _render("{{ messages[0].content.nothing.more }}")
    assert not failed.value.said


def test_the_same_chat_takes_the_same_steps_every_time() -> None:
    template = Template("{% for m in messages %}{{ m.role ~ m.content|upper }}{% endfor %}")
    steps = {template.measured(Chat([_USER] * 3))[1] for _ in range(3)}
    assert 1 == len(steps)
    assert template.measured(Chat([_USER] * 4))[1] > steps.pop()


def test_the_bound_is_exact() -> None:
    template, chat = Template("{% for m in messages %}{{ m.role }}{% endfor %}"), Chat([_USER] * 3)
    steps = template.measured(chat)[1]
    assert "useruseruser" == template.render(chat, bounds=Bounds(steps=max(steps, 200)))
    with pytest.raises(TemplateRefused, match="steps"):
        Template("{% for m in messages * 99 %}{{ m.role }}{% endfor %}").render(chat, bounds=Bounds(steps=200))
