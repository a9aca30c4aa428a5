"""The one place that touches `xllamacpp`, which has no types: a server inside this process."""

import importlib
import secrets
from collections.abc import Callable, Sequence
from typing import Any

from weft_engine.adapters.llamacpp_settings import LlamaCppSettings
from weft_engine.adapters.llamacpp_vulkan import keep_to_claimed
from weft_engine.launch import ClaimedDevice, Launch, LoraFile

ERRORS_ONLY, LOADING_TOO = 1, 3
"""llama.cpp's verbosity: with the second it also writes which layers it puts where, and a line about each request"""


class NativeServer:
    """llama.cpp's server: completions by callback in this process, the rest over a keyed loopback port."""

    def __init__(
        self, launch: Launch, settings: LlamaCppSettings, *, embeddings: bool, layers: int | None = None
    ) -> None:
        """Load the model, which has so many layers.

        Holds the interpreter while it loads, which is llama.cpp's binding's way.

        Raises RuntimeError; llama.cpp writes why to stderr. Raises NotAddressable, DevicesMissing.
        """
        native: Any = importlib.import_module("xllamacpp")
        keep_to_claimed(launch.devices)
        check_devices(native, launch.devices, settings)
        self.key = secrets.token_urlsafe(32)
        self._server: Any = native.Server(native_params(native, launch, settings, self.key, embeddings, layers))
        self.address: str = self._server.listening_address

    def complete(self, request: str, on_chunk: Callable[[str], bool]) -> None:
        """Run one streaming completion; blocks, without the interpreter's lock, until it ends.

        `on_chunk` gets each chunk's JSON and answers whether to stop. It must not raise: that would be
        swallowed. Raises RuntimeError for what llama.cpp throws.
        """
        self._server.handle_completions(request, on_chunk)

    def embeddings(self, request: str) -> str:
        """Blocking, like `complete`; JSON in and out."""
        return self._server.handle_embeddings(request)

    def rerank(self, request: str) -> str:
        """Blocking, like `complete`; JSON in and out."""
        return self._server.handle_rerank(request)

    def close(self) -> None:
        """Stop the server's threads and give the memory back; blocks."""
        self._server = None


class DevicesMissing(Exception):
    """llama.cpp sees fewer accelerators than are claimed; the message is a sentence."""


def check_devices(native: Any, claimed: Sequence[ClaimedDevice], settings: LlamaCppSettings) -> None:
    """Without its devices llama.cpp would put all layers on the processor, and say nothing of it. Raises
    DevicesMissing."""
    accelerators = [device for device in claimed if device.vendor != "cpu"]
    if not accelerators or settings.gpu_layers == 0:
        return
    types = native.ggml_backend_dev_type
    kinds = (types.GGML_BACKEND_DEVICE_TYPE_GPU, types.GGML_BACKEND_DEVICE_TYPE_IGPU)
    seen = [each["name"] for each in native.get_device_info() if each["type"] in kinds]
    if len(seen) < len(accelerators):
        raise DevicesMissing(
            f"llama.cpp sees {len(seen)} of the {len(accelerators)} claimed accelerators"
            f"{' (' + ', '.join(seen) + ')' if seen else ''}: its driver may have lost one, or it was built for others"
        )


def version() -> str:
    """The binding's version, which is the build's date."""
    native: Any = importlib.import_module("xllamacpp")
    return str(native.__version__)


def split(accelerators: Sequence[ClaimedDevice], places: int) -> list[float]:
    """Which part of the layers each accelerator gets, as the claim divides its bytes; zeros: there is no choice."""
    claimed = [device.bytes for device in accelerators] if len(accelerators) > 1 else []
    total = sum(claimed)
    parts = [size / total for size in claimed] if total else []
    return parts[:places] + [0.0] * (places - len(parts))


def offloaded(accelerators: Sequence[ClaimedDevice], asked: int | None, layers: int | None) -> int:
    """How many layers llama.cpp puts on accelerators; -1: all.

    It counts the output as the first of them, so that as many as the model has would leave one out: that is all.
    """
    if asked is None:
        return -1 if accelerators else 0
    return -1 if layers and asked >= layers else asked


def lora_info(native: Any, adapter: LoraFile) -> Any:
    """A LoRA adapter as llama.cpp is told of it."""
    info = native.CommonAdapterLoraInfo()
    info.path, info.scale = adapter.path, adapter.scale
    return info


def native_params(
    native: Any, launch: Launch, settings: LlamaCppSettings, key: str, embeddings: bool, layers: int | None = None
) -> Any:
    """llama.cpp's parameters for a launch; `layers`: the model's."""
    params = native.CommonParams()
    params.model.path = launch.model_path
    params.verbosity = LOADING_TOO if launch.log_level == "debug" else ERRORS_ONLY
    params.n_ctx = launch.context_tokens * launch.concurrency
    params.n_parallel = launch.concurrency
    params.cont_batching = True
    params.kv_unified = False  # each request has its own context, whatever the others do
    params.fit_params = False  # the claim is computed elsewhere; never shrink the context silently
    params.cache_ram_mib = settings.cache_ram_mib
    # its own default, all cores, is thousandfold slower beside other work
    params.cpuparams.n_threads = launch.threads
    params.cpuparams_batch.n_threads = settings.batch_threads or launch.threads
    accelerators = [device for device in launch.devices if device.vendor != "cpu"]
    params.n_gpu_layers = offloaded(accelerators, settings.gpu_layers, layers)
    params.main_gpu = 0  # the process sees the claimed ones alone, in the claim's order
    params.tensor_split = split(accelerators, len(params.tensor_split))
    params.lora_adapters = [lora_info(native, each) for each in launch.adapters]
    # the port serves templates and tokenizers to this process alone
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.cors_origins = "http://127.0.0.1"
    params.ui = False
    params.endpoint_slots = False
    params.n_threads_http = 4
    if settings.batch_tokens is not None:
        params.n_batch = settings.batch_tokens
    if settings.micro_batch_tokens is not None:
        params.n_ubatch = settings.micro_batch_tokens
    if settings.flash_attention is not None:
        kinds = native.llama_flash_attn_type
        params.flash_attn_type = (
            kinds.LLAMA_FLASH_ATTN_TYPE_ENABLED if settings.flash_attention else kinds.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
    for name, kind in (("cache_type_k", settings.cache_type_k), ("cache_type_v", settings.cache_type_v)):
        if kind is not None:
            setattr(params, name, getattr(native.ggml_type, f"GGML_TYPE_{kind.upper()}"))
    if settings.draft_model is not None:
        draft = params.speculative.draft
        params.speculative.types = [native.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        draft.mparams.path = settings.draft_model
        draft.n_gpu_layers = -1 if accelerators else 0
        draft.cpuparams.n_threads = launch.threads
        draft.cpuparams_batch.n_threads = settings.batch_threads or launch.threads
        if settings.draft_tokens is not None:
            draft.n_max = settings.draft_tokens
    if settings.load_in_memory:
        params.load_mode = native.llama_load_mode.LLAMA_LOAD_MODE_NONE
    if settings.chat_template is not None:
        params.chat_template = settings.chat_template
    if embeddings:
        params.embedding = True
        # an encoder sees a whole text at once
        params.n_batch = params.n_ubatch = min(launch.context_tokens, 8192)
    if settings.pooling is not None:
        params.pooling_type = getattr(native.llama_pooling_type, f"LLAMA_POOLING_TYPE_{settings.pooling.upper()}")
    return params
