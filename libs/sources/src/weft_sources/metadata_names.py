"""Which of a source's files are a model's metadata: the small ones that say how it is used."""

import re
from typing import Final

CONFIG: Final = "config.json"
INDEX: Final = "model.safetensors.index.json"

_METADATA: Final = re.compile(
    r"(params|(generation_|preprocessor_|processor_|video_preprocessor_|hf_quant_|quantize_|quantization_)?config"
    r"|special_tokens_map|added_tokens|vocab|image_processor)\.json"
    r"|tokenizer[A-Za-z0-9_.-]*\.(json|model|txt|tiktoken|jinja)"
    r"|chat_template[A-Za-z0-9_.-]*\.(json|jinja)"
    r"|additional_chat_templates/[A-Za-z0-9_.-]+\.jinja"
    r"|merges\.txt|vocab\.txt|(spiece|sentencepiece\.bpe|tekken)\.(model|json)"
    r"|[A-Za-z0-9_-]+\.tiktoken"
)


def is_metadata(name: str) -> bool:
    """Whether a name, relative to the model's folder, is one that engines or gateways read as metadata."""
    return _METADATA.fullmatch(name) is not None
