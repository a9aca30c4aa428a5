"""What a GGUF file, or several that make one model, say of the model."""

from dataclasses import dataclass

from weft_contracts.facts.shape import ModelShape


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What placement, the agent and the engine need to know of a model file. Sizes in bytes."""

    version: int
    architecture: str
    """llama.cpp's name for it, such as "llama", "qwen3", "bert\""""
    name: str
    layers: int
    embedding_length: int
    heads: int
    """attention heads; of the largest layer where they differ"""
    kv_heads: tuple[int, ...]
    """KV heads of each layer; empty for a model without attention"""
    key_length: int
    """values of one head's key"""
    value_length: int
    """values of one head's value"""
    latent_length: int
    """values cached per token and layer by latent attention (MLA), else 0"""
    context_length: int
    """tokens the model was trained for"""
    vocabulary: int
    """tokens in the vocabulary"""
    experts: int
    tensors: int
    tensor_bytes: int
    """all weights, as they lie in the file"""
    layer_bytes: tuple[int, ...]
    """weights of each layer; what is left of tensor_bytes belongs to no layer (embeddings, output)"""
    output_bytes: int
    """weights of the output; a model without some of its own uses the embeddings"""
    input_bytes: int
    """what is neither of a layer nor the output's own: embeddings, and what is small"""
    file_bytes: int
    """length of the file, or of all that make the model"""
    tensor_types: tuple[str, ...]
    """types of the weights, the one with most bytes first"""
    splits: int
    """files that make the model together; 1 for a whole one"""
    kind: str
    """ "model", "adapter", …; "model" where the file doesn't say"""
    adapter: str
    """of an adapter: how it changes a model, such as "lora\""""
    causal: bool
    """False for encoders (embedding models)"""
    pooling: int
    """how token vectors become one, by llama.cpp's number; 0: not at all, as in models that write"""
    chat_template: str
    """empty when the file has none"""
    tokenizer: str
    """ "gpt2", "llama", "bert", …; empty when the file has none"""
    tokenizer_pre: str
    bos_token: int | None
    eos_token: int | None
    add_bos: bool | None
    """None when the file leaves it to the tokenizer's default"""
    shape: ModelShape | None = None
    """what its cache and activations are made of"""

    @property
    def embeds(self) -> bool:
        """Whether it is made to make embeddings, or scores, and not to write."""
        return not self.causal or self.pooling > 0

    def kv_bytes_per_token(self, value_bytes: float = 2.0) -> float:
        """Bytes of KV cache that one token of context takes, with `value_bytes` per cached value."""
        return sum(self.layer_kv_bytes(value_bytes))

    def layer_kv_bytes(self, value_bytes: float = 2.0) -> tuple[float, ...]:
        """The same of each layer; empty for a model without attention."""
        if self.latent_length:
            return (self.latent_length * value_bytes,) * self.layers
        return tuple(heads * (self.key_length + self.value_length) * value_bytes for heads in self.kv_heads)
