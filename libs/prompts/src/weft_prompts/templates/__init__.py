"""Chat templates, rendered in bounds."""

from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat, Template
from weft_prompts.templates.named import chosen, templates_of
from weft_prompts.templates.probes import digest_of, probes, renderings, renders_alike
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused

__all__ = [
    "Bounds",
    "Chat",
    "Template",
    "TemplateFailed",
    "TemplateRefused",
    "chosen",
    "digest_of",
    "probes",
    "renderings",
    "renders_alike",
    "templates_of",
]
