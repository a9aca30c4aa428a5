"""Prompts as token ids, by the model's own template and tokenizer, which this process has beside vLLM's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

from weft_engine.adapters.vllm_native import Tokenizer
from weft_engine.adapters.vllm_settings import VllmSettings
from weft_engine.native_calls import on_own_thread

LONG: Final = 8192
"""Characters; what is longer is not made ids on the event loop's thread."""


class VllmPrompts:
    """Makes ids of prompts."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: int, settings: VllmSettings) -> None:
        self.variables: Mapping[str, Any] = settings.default_chat_template_kwargs or {}
        """of the chat template, where a request doesn't name them"""
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._template = settings.chat_template
        self._shows_tools: bool | None = None

    async def ids(
        self, prompt: pb.Prompt, tools: Sequence[Mapping[str, Any]] = (), variables: Mapping[str, Any] | None = None
    ) -> list[int]:
        """A prompt's ids. `tools`, `variables`: what a chat's template is given beside its messages.

        Raises RequestRefused.
        """
        match prompt.WhichOneof("prompt"):
            case "tokens":
                return self.known(list(prompt.tokens.ids), "the prompt")
            case "chat":
                length = sum(len(message.content) for message in prompt.chat.messages)
                length += sum(len(str(tool)) for tool in tools)
                found = await self._away(
                    length,
                    lambda: self._of_chat(prompt.chat, tools, self.variables if variables is None else variables),
                )
            case _:
                if not prompt.text:
                    raise RequestRefused(pb.FAULT_BAD_REQUEST, "the prompt is empty", "prompt")
                found = await self.of_text(prompt.text)
        if not found:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "the prompt is empty", "prompt")
        return found

    async def of_text(self, text: str) -> list[int]:
        """A text's ids, with what the model wants around it."""
        return await self._away(len(text), lambda: self._tokenizer.encode(text))

    def shows_tools(self) -> bool:
        """Whether the chat template tells the model of tools that it is given."""
        if self._shows_tools is None:
            probe = "weft_tool_of_a_try"
            function: dict[str, Any] = {
                "name": probe,
                "description": "",
                "parameters": {"type": "object", "properties": {}},
            }
            try:
                shown: Any = self._tokenizer.apply_chat_template(
                    [{"role": "user", "content": "x"}],
                    tools=[{"type": "function", "function": function}],
                    chat_template=self._template,
                    add_generation_prompt=True,
                    tokenize=False,
                )
                self._shows_tools = probe in str(shown)
            except Exception:  # templates raise what they like
                self._shows_tools = False
        return self._shows_tools

    def known(self, ids: list[int], what: str) -> list[int]:
        """The same ids, if the model has them. Raises RequestRefused."""
        if ids and max(ids) >= self._vocabulary:
            raise RequestRefused(
                pb.FAULT_BAD_REQUEST,
                f"{what} has the token id {max(ids)}; this model's ids go from 0 to {self._vocabulary - 1}",
            )
        return ids

    async def _away(self, length: int, call: Callable[[], list[int]]) -> list[int]:
        return call() if length < LONG else await on_own_thread(call, "vllm-tokenize")

    def _of_chat(self, chat: pb.Chat, tools: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]) -> list[int]:
        if self._template is None and not self._tokenizer.chat_template:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model has no chat template: send text or tokens", "prompt")
        messages = [
            {"role": m.role, "content": m.content} | ({"name": m.name} if m.name else {}) for m in chat.messages
        ]
        try:
            return self._tokenizer.apply_chat_template(
                messages,
                **variables,
                tools=list(tools) or None,
                chat_template=self._template,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
        except Exception as error:  # templates raise what they like
            sentence = f"the model's chat template refused the messages: {error}"
            raise RequestRefused(pb.FAULT_BAD_REQUEST, sentence, "prompt") from None
