"""llama.cpp's chat template and tokenizer, asked over its loopback port with its key. All calls block."""

from typing import Any, Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

from weft_engine.adapters.llamacpp_http import LlamaCppHttp

MAX_KNOWN: Final = 4096


class LlamaCppTokenizer:
    """Prompts as text and as token ids, exactly as llama.cpp makes them."""

    def __init__(self, address: str, key: str) -> None:
        self._port = LlamaCppHttp(address, key)
        self._known: dict[tuple[str, int, int], tuple[int, ...]] = {}
        self.context_tokens = int(self._ask("GET", "/props", None)["default_generation_settings"]["n_ctx"])
        """What one request's context really holds: llama.cpp rounds it, and keeps it to the model's own."""

    def prompt(self, prompt: pb.Prompt, resumed: list[int]) -> str | list[int]:
        """A prompt as a completion takes it; with what was already answered, as ids. Raises RequestRefused."""
        match prompt.WhichOneof("prompt"):
            case "tokens":
                return [*prompt.tokens.ids, *resumed]
            case "chat":
                text = self.render(prompt.chat)
            case _:
                text = prompt.text
        if not text:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "the prompt is empty", "prompt")
        return [*self.ids(text, whole=True), *resumed] if resumed else text

    def render(self, chat: pb.Chat) -> str:
        """The chat by the model's template, ready for the answer. Raises RequestRefused."""
        messages = [
            {"role": m.role, "content": m.content} | ({"name": m.name} if m.name else {}) for m in chat.messages
        ]
        return str(self._ask("POST", "/apply-template", {"messages": messages})["prompt"])

    def ids(self, text: str, *, whole: bool) -> list[int]:
        """Token ids of a text; `whole`: with what the model wants at a prompt's start."""
        asked = {"content": text, "add_special": whole, "parse_special": whole}
        return list(self._ask("POST", "/tokenize", asked)["tokens"])

    def count(self, prompt: pb.Prompt) -> int:
        """Tokens of a prompt. Raises RequestRefused."""
        return len(self.prompt_ids(prompt))

    def prompt_ids(self, prompt: pb.Prompt) -> list[int]:
        """The ids that a completion of this prompt begins with. Raises RequestRefused."""
        found = self.prompt(prompt, [])
        return self.ids(found, whole=True) if isinstance(found, str) else found

    def ids_of_one_text(self, text: str, count: int, last: int) -> tuple[int, ...]:
        """The ids of a text that took `count` tokens, of which llama.cpp told only the last.

        It tells one id for each piece of text, and a character may take several tokens. The tokenizer's own
        way is taken; where it is not the way that the model took, the last id stands alone.
        """
        key = (text, count, last)
        known = self._known.get(key)
        if known is None:
            found = self.ids(text, whole=False)
            fits = len(found) >= count and found[-1] == last
            known = tuple(found[-count:]) if fits else (last,)
            if len(self._known) < MAX_KNOWN:
                self._known[key] = known
        return known

    def close(self) -> None:
        """Close the connections that are kept."""
        self._port.close()

    def _ask(self, method: str, path: str, body: object) -> Any:
        try:
            answer = self._port.ask(method, path, body)
        except (OSError, ValueError) as error:
            raise RequestRefused(pb.FAULT_ENGINE, f"llama.cpp did not answer: {error}") from None
        if answer.status != 200:
            message = answer.body.get("error", {}).get("message", answer.body)
            raise RequestRefused(pb.FAULT_BAD_REQUEST, f"llama.cpp refused the prompt: {message}", "prompt")
        return answer.body
