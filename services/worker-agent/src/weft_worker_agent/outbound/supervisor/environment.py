"""What a worker's processes inherit of its environment: what is named here, and nothing else.

Around a worker there may be keys and passwords of all kinds, and engines run code that came with a model.
"""

import os
from collections.abc import Iterable, Mapping

PROGRAMS = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "VIRTUAL_ENV",
)
"""What any program of a worker needs."""
TOOLS = (*PROGRAMS, "XDG_RUNTIME_DIR")
"""What vendors' tools get."""
HOSTS = (*PROGRAMS, "WEFT_OTLP_ENDPOINT")
"""What engine hosts get."""
INSTALL_SOURCES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
    "UV_OFFLINE",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_CERT",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
"""What the installer gets of the agent's: where packages come from. Such addresses may bear passwords."""
MODEL_SOURCES = (
    "HF_ENDPOINT",
    "HF_TOKEN",
    "HF_HUB_OFFLINE",
    "HF_HUB_CACHE",
    "HF_HOME",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
)
"""What the agent asks models' sources with, some of it secret: no engine host and no installer gets it."""
TOOLCHAINS = ("VULKAN_SDK", "CUDA_PATH", "ROCM_PATH")
"""Where toolkits lie that engines are built with, for those builds alone."""
AGENT = (
    *TOOLS,
    "TZ",
    *INSTALL_SOURCES,
    *MODEL_SOURCES,
    *TOOLCHAINS,
    "WEFT_ADVERTISE_HOST",
    "WEFT_BACKENDS",
    "WEFT_CANARY_AFTER",
    "WEFT_DEVICES",
    "WEFT_DRAIN_TIMEOUT",
    "WEFT_ENGINE_PYTHON",
    "WEFT_ENGINE_THREADS",
    "WEFT_FILES_AT_ONCE",
    "WEFT_FILES_FOLDER",
    "WEFT_FILES_MOST_BYTES",
    "WEFT_FILES_READERS",
    "WEFT_FILES_STORE",
    "WEFT_GATEWAY_URL",
    "WEFT_GRPC_PORT",
    "WEFT_HTTP_HOST",
    "WEFT_HTTP_PORT",
    "WEFT_HUB",
    "WEFT_HUB_FOLDER",
    "WEFT_HUB_OFFLINE",
    "WEFT_HUB_TOKEN",
    "WEFT_INSTALL",
    "WEFT_INSTALL_AT_ONCE",
    "WEFT_INSTALL_KEEP",
    "WEFT_INSTALL_FIND_LINKS",
    "WEFT_INSTALL_FOLDER",
    "WEFT_INSTALL_INDEX",
    "WEFT_INSTALL_JOBS",
    "WEFT_INSTALL_OFFLINE",
    "WEFT_INSTALL_OVERDUE",
    "WEFT_INSTALL_SILENCE",
    "WEFT_LABELS",
    "WEFT_LOAD_DEADLINE",
    "WEFT_LOAD_DEADLINE_PER_GIB",
    "WEFT_LOAD_LONGEST",
    "WEFT_LOG_FORMAT",
    "WEFT_LOG_LEVEL",
    "WEFT_MAX_REPLICAS_PER_MODEL",
    "WEFT_METADATA_MOST_BYTES",
    "WEFT_METADATA_SELF_HOST",
    "WEFT_MODELS",
    "WEFT_NODE_NAME",
    "WEFT_NUMA",
    "WEFT_OTLP_ENDPOINT",
    "WEFT_S3_ACCESS_KEY",
    "WEFT_S3_SECRET_KEY",
    "WEFT_S3_SESSION_TOKEN",
    "WEFT_SECRETS_EVERY",
    "WEFT_SHARE",
    "WEFT_SIMULATE_GPUS",
    "WEFT_SOURCES_ALLOW",
    "WEFT_STALL_LONGEST",
    "WEFT_STALL_TIMEOUT",
    "WEFT_STATE",
    "WEFT_STOP_TIMEOUT",
    "WEFT_VRAM_BUDGET",
)
"""What the agent gets: its settings, the authorities that it trusts, its time zone. Its token comes another way."""


def chosen(names: Iterable[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of these names that there are."""
    return {name: environ[name] for name in names if name in environ}
