"""What nodes and models are made of, as answers show it: field by field, so that a new field is shown on purpose."""

import weft_api as api
from weft_contracts.budget import budget_text
from weft_contracts.facts.machine import FileFound, FileMissing
from weft_contracts.facts.source import (
    BuiltinSource,
    HfSource,
    HttpsSource,
    PathSource,
    S3Source,
    SimulatedSource,
    Source,
    SourceFiles,
    UploadSource,
)
from weft_contracts.facts.values import (
    Addresses,
    Backend,
    Caps,
    Device,
    Hardware,
    Member,
    ModelSpec,
    UnsizedDevice,
    Weights,
)
from weft_contracts.source_keys import source_key


def addresses_shape(addresses: Addresses) -> api.Addresses:
    """Where a node is reached."""
    return {"host": addresses.host, "http_port": addresses.http_port}


def hardware_shape(hardware: Hardware) -> api.Hardware:
    """What a node has, in bytes."""
    return {
        "cpus": hardware.cpus,
        "memory": hardware.memory,
        "disk_free": hardware.disk_free,
        "architecture": hardware.architecture,
        "devices": [_device(device) for device in hardware.devices],
        "unsized": [_unsized(device) for device in hardware.unsized],
        "notes": list(hardware.notes),
    }


def _device(device: Device) -> api.Device:
    return {
        "index": device.index,
        "vendor": device.vendor,
        "name": device.name,
        "memory": device.memory,
        "uuid": device.uuid,
        "number": device.number,
        "pci": device.pci,
        "driver": device.driver,
        "compute_capability": device.compute_capability,
        "unified": device.unified,
        "budget": device.budget,
        "simulated": device.simulated,
    }


def _unsized(device: UnsizedDevice) -> api.UnsizedDevice:
    return {"vendor": device.vendor, "name": device.name, "uuid": device.uuid, "driver": device.driver}


def backend_shape(backend: Backend) -> api.Backend:
    """An installed engine."""
    return {
        "engine": backend.engine,
        "version": backend.version,
        "vendors": list(backend.vendors),
        "profile": backend.profile,
    }


def caps_shape(caps: Caps) -> api.Caps:
    """Null is not said; a cap of 0 and a budget without text are no limit."""
    budget = caps.vram_budget
    return {
        "replicas_per_model": caps.replicas_per_model,
        "vram_budget": None if budget is None else budget_text(budget),
    }


def file_shape(found: FileFound | FileMissing) -> api.FileFound | api.FileMissing:
    """A node's answer about a model's files."""
    if isinstance(found, FileMissing):
        return {
            "type": found.type,
            "v": found.v,
            "inspection": found.inspection,
            "source": found.source,
            "reason": found.reason,
        }
    return {
        "type": found.type,
        "v": found.v,
        "inspection": found.inspection,
        "source": found.source,
        "size": found.size,
        "weights": _weights(found.weights),
        "metadata": [{"name": each.name, "size": each.size, "blake3": each.blake3} for each in found.metadata],
        "files": _counted(found.files),
        "pinned": source_key(found.pinned) if found.pinned is not None else None,
        "licence": found.licence,
        "gated": found.gated,
    }


def files_shape(files: SourceFiles) -> list[api.SourceFile]:
    """What workers fetch for a model."""
    return [{"name": file.name, "size": file.size, "checksum": file.checksum} for file in files]


def _counted(files: SourceFiles) -> api.CountedFiles:
    return {"count": len(files), "bytes": sum(file.size for file in files)}


def spec_shape(spec: ModelSpec) -> api.ModelSpec:
    """What an admin wants of a model."""
    said = _spec(spec)
    if spec.draft is not None:
        said["draft"] = _weights(spec.draft)
    return said


def _spec(spec: ModelSpec) -> api.ModelSpec:
    return {
        "source": _source(spec.source),
        "engine": spec.engine,
        "context_tokens": spec.context_tokens,
        "concurrency": spec.concurrency,
        "engine_args": dict(spec.engine_args),
        "min_replicas": spec.min_replicas,
        "max_replicas": spec.max_replicas,
        "spread_all": spec.spread_all,
        "selector": dict(spec.selector),
        "capability": list(spec.capability),
        "anti_affinity": spec.anti_affinity,
        "policy": spec.policy,
        "strategy": spec.strategy,
        "layout": {
            "tensor_parallel": spec.layout.tensor_parallel,
            "pipeline_parallel": spec.layout.pipeline_parallel,
            "gpus": list(spec.layout.gpus),
            "gpus_per_replica": spec.layout.gpus_per_replica,
            "preferred_nodes": list(spec.layout.preferred_nodes),
            "distributed": spec.layout.distributed,
            "cpu_offload": spec.layout.cpu_offload,
        },
        "priority": spec.priority,
        "weights": _weights(spec.weights),
        "adapters": [
            {
                "name": adapter.name,
                "path": adapter.path,
                "scale": adapter.scale,
                "bytes": adapter.bytes,
                "fingerprint": adapter.fingerprint,
            }
            for adapter in spec.adapters
        ],
        "files": _counted(spec.files),
    }


def _source(source: Source) -> api.Source:
    match source:
        case BuiltinSource():
            return {"kind": source.kind, "name": source.name}
        case PathSource():
            return {"kind": source.kind, "path": source.path}
        case SimulatedSource():
            return {"kind": source.kind}
        case HfSource():
            hub: api.HfSource = {
                "kind": source.kind,
                "repository": source.repository,
                "revision": source.revision,
                "file": source.file,
            }
            if source.secret:
                hub["secret"] = source.secret
            return hub
        case HttpsSource():
            web: api.HttpsSource = {"kind": source.kind, "url": source.url}
            if source.secret:
                web["secret"] = source.secret
            return web
        case S3Source():
            bucket: api.S3Source = {
                "kind": source.kind,
                "bucket": source.bucket,
                "key": source.key,
                "region": source.region,
                "endpoint": source.endpoint,
            }
            if source.secret:
                bucket["secret"] = source.secret
            return bucket
        case UploadSource():
            return {"kind": source.kind, "name": source.name}


def _weights(weights: Weights) -> api.Weights:
    said = _header(weights)
    if (shape := weights.shape) is not None:
        said["shape"] = {
            "whole": {"keys": shape.whole.keys, "values": shape.whole.values},
            "windowed": {"keys": shape.windowed.keys, "values": shape.windowed.values},
            "window_tokens": shape.window_tokens,
            "state_bytes": shape.state_bytes,
            "width": shape.width,
            "inner": shape.inner,
            "vocabulary": shape.vocabulary,
            "tensor_bytes": dict(shape.tensor_bytes),
            "computed_in": shape.computed_in,
            "fault": shape.fault,
        }
        if (counts := shape.counts) is not None:
            said["shape"]["counts"] = {"whole": counts.whole, "windowed": counts.windowed, "state": counts.state}
    return said


def _header(weights: Weights) -> api.Weights:
    return {
        "format": weights.format,
        "architecture": weights.architecture,
        "weight_bytes": weights.weight_bytes,
        "kv_bytes_per_token": weights.kv_bytes_per_token,
        "layers": weights.layers,
        "heads": weights.heads,
        "kv_heads": weights.kv_heads,
        "vision_heads": weights.vision_heads,
        "context_tokens": weights.context_tokens,
        "embeds": weights.embeds,
        "fingerprint": weights.fingerprint,
    }


def member_shape(member: Member) -> api.Member:
    """One node's part of a replica."""
    return {
        "node": member.node,
        "rank": member.rank,
        "devices": [{"index": device.index, "bytes": device.bytes} for device in member.devices],
    }
