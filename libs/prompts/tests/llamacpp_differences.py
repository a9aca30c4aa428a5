"""Where renderings differ: the template, the chats of `probe_chats` that do, and why."""

from typing import Final

_ALL: Final = "user system turns whole parts tools calls"
_NO_TOOLS: Final = "llama.cpp leaves `tools` out where a chat has none, and what lacks loops as empty; here it is None"
_DATE: Final = "llama.cpp gives `date_string`, today; `transformers` doesn't: the template has a day of its own"
_APPEND: Final = "the template appends to a list, which the sandbox of `transformers` and ours refuse"
_JOINED: Final = "llama.cpp makes parts one text with a line between them; this template takes parts itself"
_OPENED: Final = "llama.cpp ends with the generation prompt although `add_generation_prompt` is off"

OF_TRANSFORMERS: Final[dict[str, tuple[str, str]]] = {
    "llama-cpp-deepseek-r1": (
        "tools calls",
        "it writes a generator as JSON: fails there; here `map` makes a list",
    ),
    "meetkai-functionary-medium-v3.1": ("tools calls", "`|safe` there has what is added to it escaped as HTML"),
}
OF_LLAMA_CPP: Final[dict[str, tuple[str, str]]] = {
    "Apertus-8B-Instruct": (_ALL, "llama.cpp leaves its deliberation off although thinking is on"),
    "CohereForAI-c4ai-command-r-plus-tool_use": (_ALL, _NO_TOOLS + "; with tools it reads attributes that they lack"),
    "Kimi-K2-Instruct": ("calls", _APPEND),
    "Kimi-K2-Thinking": ("calls", _APPEND),
    "LFM2.5-8B-A1B": ("parts", _JOINED),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": ("user system turns whole parts", _NO_TOOLS),
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": ("user system turns whole parts", _NO_TOOLS),
    "StepFun3.5-Flash": ("user system turns whole tools calls", "llama.cpp trims each message's content for it"),
    "fireworks-ai-llama-3-firefunction-v2": (_ALL, "llama.cpp gives it `functions` and `datetime`"),
    "google-gemma-2-2b-it": (
        "system turns tools",
        "llama.cpp joins system's and user's messages; here it fails",
    ),
    "google-gemma-4-31B-it": ("calls", "llama.cpp opens the model's turn after a tool's result"),
    "google-gemma-4-31B-it-interleaved": ("calls", "llama.cpp joins call and result into one turn"),
    "llama-cpp-rwkv-world": ("whole", _OPENED),
    "meetkai-functionary-medium-v3.2": ("calls", "llama.cpp hands a call's arguments over as text; here as it came"),
    "meta-llama-Llama-3.1-8B-Instruct": (_ALL, _DATE),
    "meta-llama-Llama-3.3-70B-Instruct": (_ALL, _DATE),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("parts", _JOINED),
    "upstage-Solar-Open-100B": ("whole", _OPENED),
}
