"""Run by vLLM's Python: writes a small cross-encoder of random weights, and scores pairs by transformers.

    python cross_encoder.py FOLDER '[["query", "text"], …]'

prints `{"scores": […], "tokens": […], "blind": […]}`; the blind ones take all of a pair for the query.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

torch: Any = importlib.import_module("torch")
transformers: Any = importlib.import_module("transformers")

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS), "?", "."]


def main() -> None:
    """Write, then score."""
    folder, pairs = Path(sys.argv[1]), json.loads(sys.argv[2])
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    tokenizer: Any = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    config: Any = transformers.BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=128,
        num_labels=1,
        initializer_range=0.3,
    )
    model: Any = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        model.classifier.bias.fill_(0.25)
    model.save_pretrained(folder)
    found: dict[str, list[float]] = {"scores": [], "tokens": [], "blind": []}
    for query, text in pairs:
        asked: Any = tokenizer(query, text, return_tensors="pt")
        found["tokens"].append(asked["input_ids"].shape[1])
        kinds = {"scores": asked["token_type_ids"], "blind": torch.zeros_like(asked["input_ids"])}
        for name, kind in kinds.items():
            with torch.no_grad():
                logit: Any = model(asked["input_ids"], token_type_ids=kind).logits
            found[name].append(float(logit.sigmoid()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
