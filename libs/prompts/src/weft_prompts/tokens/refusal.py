"""What is raised where no tokenizer can be had that is surely the engine's."""


class NoTokenizer(ValueError):
    """No tokenizer here; the engine tokenizes itself. The text is one sentence that says why."""
