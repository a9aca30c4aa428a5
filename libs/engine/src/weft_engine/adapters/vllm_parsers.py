"""vLLM's own parsers of a model family's answers, by their names: the one place that touches them."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from weft_dataplane import LoadFailed

from weft_engine.adapters.called_functions import Call, CalledFunction
from weft_engine.adapters.vllm_native import NativeEngine
from weft_engine.adapters.vllm_settings import VllmSettings
from weft_engine.adapters.vllm_starting import version

_REGISTRIES: Final = {
    "tool_call_parser": ("vllm.tool_parsers", "ToolParserManager"),
    "reasoning_parser": ("vllm.reasoning", "ReasoningParserManager"),
}


class Found(NamedTuple):
    """What a step adds to an answer."""

    thought: str = ""
    text: str = ""
    calls: Sequence[Call] = ()


class StreamParser:
    """Reads one answer."""

    def __init__(self, native: Any, request: Any) -> None:
        self._native = native
        self._request = request
        self.skip_special_tokens = bool(request.skip_special_tokens)
        """whether the text that it is fed leaves out tokens that only mark"""

    def thinks_after(self, prompt_ids: list[int]) -> bool:
        """Whether an answer to this prompt may begin with thoughts."""
        return self._native.reasoning_parser is not None and not self._native.is_reasoning_end(prompt_ids)

    def feed(self, text: str, ids: list[int], prompt_ids: list[int], *, finished: bool = False) -> Found:
        """What a step's text and ids add. Raises what vLLM raises."""
        made: Any = self._native.parse_delta(text, ids, self._request, prompt_ids, finished=finished)
        if made is None:
            return Found()
        calls = [
            Call(each.index, CalledFunction(each.function.name, each.function.arguments))
            for each in made.tool_calls or ()
            if each.function is not None
        ]
        return Found(made.reasoning or "", made.content or "", calls)


class Parsers:
    """Of one model: for calls of tools, for reasoning, or for both."""

    def __init__(self, settings: VllmSettings, engine: NativeEngine) -> None:
        """Raises LoadFailed where a parser can't work with the model's tokenizer."""
        manager: Any = importlib.import_module("vllm.parser").ParserManager
        protocol: Any = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
        self._request: Any = protocol.ChatCompletionRequest
        self._engine = engine
        self.finds_calls = settings.tool_call_parser is not None
        try:
            self._native: Any = manager.get_parser(
                tool_parser_name=settings.tool_call_parser,
                reasoning_parser_name=settings.reasoning_parser,
                enable_auto_tools=self.finds_calls,
                is_harmony=getattr(engine.model.hf_config, "model_type", "") == "gpt_oss",
                tokenizer=engine.tokenizer,
            )
        except (TypeError, ValueError) as error:
            raise LoadFailed(f"vLLM's parsers do not suit the model: {error}", permanent=True) from None

    def open(self, functions: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> StreamParser:
        """For one answer: functions that may be called, the chat template's variables. Raises what vLLM raises."""
        asked = self._request(
            messages=[{"role": "user", "content": ""}],
            tools=list(functions) or None,
            tool_choice="auto" if functions else "none",
            chat_template_kwargs=dict(variables) or None,
        )
        native = self._native(
            self._engine.tokenizer, asked.tools, chat_template_kwargs=dict(variables), model_config=self._engine.model
        )
        return StreamParser(native, native.adjust_request(asked))


def check_names(settings: VllmSettings) -> None:
    """Raises LoadFailed for a parser that this vLLM has not."""
    for setting, (module, registry) in _REGISTRIES.items():
        name: str | None = getattr(settings, setting)
        if name is None:
            continue
        known: list[str] = getattr(importlib.import_module(module), registry).list_registered()
        if name not in known:
            has = ", ".join(known)
            raise LoadFailed(
                f"engine_args.{setting} is {name[:64]!r}: vLLM {version()} has no such parser; it has {has}",
                permanent=True,
            )


def parsers_of(settings: VllmSettings, engine: NativeEngine) -> Parsers | None:
    """None where the settings name no parser. Raises LoadFailed."""
    named = settings.tool_call_parser is not None or settings.reasoning_parser is not None
    return Parsers(settings, engine) if named else None
