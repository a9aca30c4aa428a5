"""Chats are rendered as `transformers` renders them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_prompts.templates import (
    Chat,
    Template,
    TemplateFailed,
    TemplateRefused,
    chosen,
    digest_of,
    probes,
    renderings,
    renders_alike,
    templates_of,
)
from weft_prompts.templates.compiled import MOST_KEPT, _kept, compiled

_TURNS = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
_TRIMS = _TURNS.replace("m.content", "m.content|trim")
_PARTS = (
    "{% for m in messages %}{% for part in m.content %}{% if part.type == 'text' %}[{{ part.text }}]"
    "{% endif %}{% endfor %}{% endfor %}"
)


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_a_prompt_ends_where_the_answer_begins() -> None:
    assert "<user>hi</user><assistant>" == Template(_TURNS).render(Chat([_user("hi")]))
    assert "<user>hi</user>" == Template(_TURNS).render(Chat([_user("hi")], add_generation_prompt=False))


def test_json_is_written_without_escapes_for_pages() -> None:
    text = Template("{{ tools|tojson }}|{{ tools|tojson(indent=2) }}|{{ 'é<&>'|tojson(ensure_ascii=true) }}")
    assert '[{"é": "<&>"}]|[\n  {\n    "é": "<&>"\n  }\n]|"\\u00e9<&>"' == text.render(
        Chat([_user("hi")], tools=[{"é": "<&>"}])
    )


def test_blocks_take_their_line_with_them_and_loops_can_be_left() -> None:
    text = "{% for m in messages %}\n  {% if loop.index0 == 1 %}\n    {% break %}\n  {% endif %}\n{{ m.content }}\n"
    text += "{% endfor %}\n"
    assert "a\n" == Template(text).render(Chat([_user("a"), _user("b")]))


def test_generation_blocks_are_what_they_hold() -> None:
    assert "ahib" == Template("a{% generation %}{{ messages[0].content }}{% endgeneration %}b").render(
        Chat([_user("hi")])
    )


def test_the_time_is_the_callers_and_without_one_the_template_fails() -> None:
    template, chat = Template("{{ strftime_now('%d %b %Y') }}"), Chat([_user("hi")])
    assert "23 Nov 2026" == template.render(chat, now=datetime(2026, 11, 23))
    with pytest.raises(TemplateFailed, match="none was given"):
        template.render(chat)


def test_clients_set_what_the_template_reads_and_nothing_of_ours() -> None:
    template = Template("{{ 'no thoughts' if enable_thinking is false else 'thoughts' }}")
    assert "thoughts" == template.render(Chat([_user("hi")]))
    assert "no thoughts" == template.render(Chat([_user("hi")], extra={"enable_thinking": False}))
    for name in ("messages", "raise_exception", "namespace", "_x", "a b", "(now)"):
        with pytest.raises(TemplateFailed, match="may not set"):
            template.render(Chat([_user("hi")], extra={name: 1}))


def test_parts_become_one_text_for_a_template_that_takes_text() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert "<user>one\ntwo</user><assistant>" == Template(_TURNS).render(Chat([_user(parts)]))
    with pytest.raises(TemplateFailed, match="image_url"):
        Template(_TURNS).render(Chat([_user([{"type": "image_url", "image_url": {"url": "x"}}])]))


def test_text_becomes_a_part_for_a_template_that_takes_parts() -> None:
    assert "[one][two]" == Template(_PARTS).render(
        Chat([_user([{"type": "text", "text": "one"}]), _user("two")], add_generation_prompt=False)
    )


@given(st.text().filter(lambda text: text == text.strip()), st.sampled_from([_TURNS, _TRIMS]))
def test_a_last_message_that_goes_on_is_open_at_its_end(text: str, template: str) -> None:
    chat = Chat(
        [_user("hi"), {"role": "assistant", "content": text}], add_generation_prompt=False, continue_final_message=True
    )
    assert f"<user>hi</user><assistant>{text}" == Template(template).render(chat)


def test_a_template_that_drops_the_last_message_cannot_go_on_with_it() -> None:
    chat = Chat([_user("hi")], add_generation_prompt=False, continue_final_message=True)
    with pytest.raises(TemplateFailed, match="leaves out"):
        Template("{{ messages[0].role }}").render(chat)
    with pytest.raises(TemplateFailed, match="add_generation_prompt"):
        Template(_TURNS).render(Chat([_user("hi")], continue_final_message=True))


def test_thoughts_are_found_under_each_of_their_names() -> None:
    template = Template("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}")
    for name in ("reasoning_content", "thinking", "reasoning"):
        assert "hmhm" == template.render(Chat([{"role": "assistant", "content": "", name: "hm"}]))


def test_a_chat_with_tools_takes_the_template_for_tools() -> None:
    found = templates_of([{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}])
    assert ["a", "b", "a"] == [chosen(found), chosen(found, tools=True), chosen(found, name="default", tools=True)]
    assert "x" == chosen(templates_of("x"), tools=True)
    with pytest.raises(TemplateRefused, match="it has default, tool_use"):
        chosen(found, name="rag")


@pytest.mark.parametrize("found", [None, 1, [], [1], [{"name": "a"}], {"a": 1}, [{"name": "a", "template": "b"}] * 17])
def test_what_names_no_templates_is_refused(found: Any) -> None:
    with pytest.raises(TemplateRefused, match="chat_template"):
        templates_of(found)


def test_what_is_no_json_is_not_handed_to_a_template() -> None:
    values: list[Any] = [object(), b"x", {"a": {1, 2}}, type("S", (str,), {})("x")]
    for value in values:
        with pytest.raises(TemplateFailed, match="messages"):
            Template(_TURNS).render(Chat([_user(value)]))


def test_templates_are_kept_by_their_content_and_not_without_end() -> None:
    assert compiled(_TURNS) is compiled(str(_TURNS))
    for number in range(MOST_KEPT + 5):
        compiled(f"{number}")
    assert MOST_KEPT == len(_kept)


def test_threads_render_one_template_without_a_word_of_one_another() -> None:
    def render(number: int) -> str:
        return Template(_TURNS).render(Chat([_user(str(number))] * 20, add_generation_prompt=False))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(render, range(64)))
    assert [f"<user>{number}</user>" * 20 for number in range(64)] == found


def test_a_template_that_differs_is_found_by_its_digest() -> None:
    assert renders_alike(Template(_TURNS), Template(_TURNS + "{# a word #}"))
    assert not renders_alike(Template(_TURNS), Template(_TRIMS))
    assert not renders_alike(Template(_TURNS), Template("{{ raise_exception('no') }}"))
    assert (None,) * len(probes()) == renderings(Template("{{ raise_exception('no') }}"))
    assert digest_of(renderings(Template(_TURNS))) == digest_of([Template(_TURNS).render(chat) for chat in probes()])
