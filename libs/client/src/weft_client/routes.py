"""The routes of the gateway's admin API that commands use, each with the type of its answer. Streams are asked for by
who reads them."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from weft_client.gateway import Gateway, segment

if TYPE_CHECKING:  # types alone: a command need not wait for what defines them
    from weft_api import (
        Alias,
        AliasChanged,
        BackendRecipeChanged,
        BackendRecipeWithdrawn,
        BackendUpgraded,
        CapsChanged,
        Changed,
        ChangeRequest,
        CommitPage,
        Deployed,
        EngineProfile,
        EngineProfileChanged,
        EngineProfileWithdrawn,
        Explained,
        Key,
        KeyChanged,
        KeyMade,
        Labels,
        MeshLoad,
        ModelChanged,
        ModelRetried,
        ModelRolledBack,
        ModelsOnNode,
        NamedSecret,
        NamedSecretChanged,
        NamedSecretSet,
        NameErased,
        Node,
        NodeBackendRemoved,
        NodeBackends,
        NodeBackendWanted,
        NodeChanged,
        NodeDetail,
        NodeLeaves,
        OpenAIModelList,
        Plan,
        Policy,
        PolicyChanged,
        Scheduling,
        SchedulingChanged,
        Status,
        Token,
        TokenChanged,
        TokenMade,
        Unloaded,
        Upgrade,
        UpgradeFinished,
    )

_PAGE = 1000
"""The most that a page holds."""


def status(gateway: Gateway) -> "Status":
    """The mesh in one look, which the gateway has by heart: it answers without Postgres and NATS."""
    return gateway.get("/api/status")


def load(gateway: Gateway, most: int) -> "MeshLoad":
    """What the mesh has to do now; of each list so many at most, 100 at most."""
    return gateway.get(f"/api/load?most={most}")


def servable(gateway: Gateway) -> "OpenAIModelList":
    """Models that the caller may ask."""
    return gateway.get("/v1/models")


def nodes(gateway: Gateway, query: str) -> "Iterator[Node]":
    """All nodes that fit a query, from the tables."""
    return all_items(gateway, "/api/nodes", query)


def node(gateway: Gateway, ref: str) -> "NodeDetail":
    """One node by id or name."""
    return gateway.get(_node(ref))


def change_node(gateway: Gateway, ref: str, how: str, body: Mapping[str, Any]) -> "NodeChanged":
    """`how`: approve, reject, cordon, uncordon, drain or resume."""
    return gateway.post(f"{_node(ref)}/{how}", body)


def remove_node(gateway: Gateway, ref: str, **query: str | int) -> "NodeLeaves":
    """Take a node out for good."""
    return gateway.delete(_node(ref), **query)


def labels(gateway: Gateway, ref: str) -> "Labels":
    """A node's labels."""
    return gateway.get(f"{_node(ref)}/labels")


def merge_labels(gateway: Gateway, ref: str, wanted: Mapping[str, str | None]) -> "Labels":
    """Set some, take away those that are None."""
    return gateway.patch(f"{_node(ref)}/labels", wanted)


def replace_labels(gateway: Gateway, ref: str, wanted: Mapping[str, str | None]) -> "Labels":
    """These and no others."""
    return gateway.put(f"{_node(ref)}/labels", wanted)


def return_labels(gateway: Gateway, ref: str) -> "Labels":
    """Leave them to the node."""
    return gateway.delete(f"{_node(ref)}/labels")


def cap(gateway: Gateway, ref: str, what: str, value: int | str) -> "CapsChanged":
    """`what`: max-replicas-per-model or vram-budget."""
    return gateway.put(f"{_node(ref)}/{what}", {"value": value})


def return_cap(gateway: Gateway, ref: str, what: str) -> "CapsChanged":
    """Leave a cap to the worker."""
    return gateway.delete(f"{_node(ref)}/{what}")


def models_on(gateway: Gateway, ref: str) -> "ModelsOnNode":
    """What a node runs."""
    return gateway.get(f"{_node(ref)}/models")


def unload(gateway: Gateway, ref: str, model: str, deadline_s: float) -> "Unloaded":
    """Take a model off a node."""
    return gateway.post(f"{_node(ref)}/models/{segment(model)}/unload", {"deadline_s": deadline_s})


def deploy(
    gateway: Gateway, name: str, spec: Mapping[str, Any], *, dry_run: bool = False, idempotency_key: str | None = None
) -> "Deployed":
    """A model, or a new revision of the one that bears this name."""
    path = "/api/models?dry_run=true" if dry_run else "/api/models"
    return gateway.post(path, {"name": name, "spec": spec}, idempotency_key=idempotency_key)


def explained(gateway: Gateway, ref: str) -> "Explained":
    """Why a replica or model is where it is, what a node could take, or what an alias stands for."""
    return gateway.get(f"/api/explanations/{segment(ref)}")


def planned(gateway: Gateway, body: Mapping[str, Any]) -> "Plan":
    """Where models would go on the mesh as it is, or its own waiting replicas; nothing is decided."""
    return gateway.post("/api/plans", body)


def schedule(gateway: Gateway, ref: str, body: Mapping[str, Any]) -> "SchedulingChanged":
    """How many replicas of a model there are to be, and on which nodes; what isn't said stays."""
    return gateway.patch(f"/api/scheduling/{segment(ref)}", body)


def schedulings(gateway: Gateway) -> "Iterator[Scheduling]":
    """Of all models, by name: how many there are to be, how they are rolled out, and what they are sized by."""
    return all_items(gateway, "/api/scheduling")


def remove_model(gateway: Gateway, ref: str) -> "ModelChanged":
    """Take a model away."""
    return gateway.delete(f"/api/models/{segment(ref)}")


def retry_model(gateway: Gateway, ref: str) -> "ModelRetried":
    """Lift `unservable`."""
    return gateway.post(f"/api/models/{segment(ref)}/retry", {})


def roll_back_model(gateway: Gateway, ref: str, to: int | None = None) -> "ModelRolledBack":
    """Serve a revision of before again; None: the last of which a replica was ready."""
    return gateway.post(f"/api/models/{segment(ref)}/rollback", {} if to is None else {"to": to})


def lift_brake(gateway: Gateway, reason: str) -> "Changed":
    """Who is silent is gone."""
    return gateway.post("/api/brake/lift", {"reason": reason})


def upgrade(gateway: Gateway) -> "Upgrade":
    """Which versions of facts may be written, and who can't read them."""
    return gateway.get("/api/upgrade")


def finish_upgrade(gateway: Gateway) -> "UpgradeFinished":
    """Facts may be written in their newest versions."""
    return gateway.post("/api/upgrade/finish", {})


def engine_profiles(gateway: Gateway) -> "Iterator[EngineProfile]":
    """All engines that the mesh knows."""
    return all_items(gateway, "/api/engine-profiles")


def set_engine_profile(gateway: Gateway, profile: Mapping[str, Any]) -> "EngineProfileChanged":
    """The mesh knows an engine by this profile."""
    return gateway.post("/api/engine-profiles", profile)


def withdraw_engine_profile(gateway: Gateway, engine: str) -> "EngineProfileWithdrawn":
    """The mesh knows it no more."""
    return gateway.delete(f"/api/engine-profiles/{segment(engine)}")


def aliases(gateway: Gateway) -> "Iterator[Alias]":
    """All aliases, by name."""
    return all_items(gateway, "/api/aliases")


def set_alias(gateway: Gateway, name: str, body: Mapping[str, Any]) -> "AliasChanged":
    """The name stands for these models from now on."""
    return gateway.put(f"/api/aliases/{segment(name)}", body)


def remove_alias(gateway: Gateway, name: str) -> "AliasChanged":
    """There is no alias of this name any more."""
    return gateway.delete(f"/api/aliases/{segment(name)}")


def policies(gateway: Gateway) -> "Iterator[Policy]":
    """All placement policies, by name."""
    return all_items(gateway, "/api/policies")


def policy(gateway: Gateway, name: str) -> "Policy":
    """One of them."""
    return gateway.get(f"/api/policies/{segment(name)}")


def set_policy(gateway: Gateway, name: str, body: Mapping[str, Any]) -> "PolicyChanged":
    """Models that name it are placed by it from now on."""
    return gateway.put(f"/api/policies/{segment(name)}", body)


def choose_policy(gateway: Gateway, name: str) -> "PolicyChanged":
    """Models that name none are placed by it from now on."""
    return gateway.post(f"/api/policies/{segment(name)}/default", {})


def withdraw_policy(gateway: Gateway, name: str) -> "PolicyChanged":
    """There is no policy of this name any more."""
    return gateway.delete(f"/api/policies/{segment(name)}")


def secrets(gateway: Gateway) -> "Iterator[NamedSecret]":
    """All secrets, by name."""
    return all_items(gateway, "/api/secrets")


def set_secret(gateway: Gateway, name: str, value: str) -> "NamedSecretSet":
    """The name has this value from now on."""
    return gateway.put(f"/api/secrets/{segment(name)}", {"value": value})


def remove_secret(gateway: Gateway, name: str) -> "NamedSecretChanged":
    """There is no secret of this name any more."""
    return gateway.delete(f"/api/secrets/{segment(name)}")


def backends(gateway: Gateway) -> "Iterator[NodeBackends]":
    """What each node has installed, and what it installs."""
    return all_items(gateway, "/api/backends")


def install_backend(gateway: Gateway, node: str, engine: str) -> "NodeBackendWanted":
    """The node is to have it, whether a replica needs it or not."""
    return gateway.post(f"/api/nodes/{segment(node)}/backends/{segment(engine)}", {})


def uninstall_backend(gateway: Gateway, node: str, engine: str, version: str) -> "NodeBackendRemoved":
    """The node removes what it installed of it, in this version or (empty) all."""
    which = f"?version={quote(version)}" if version else ""
    return gateway.delete(f"/api/nodes/{segment(node)}/backends/{segment(engine)}{which}")


def upgrade_backend(gateway: Gateway, engine: str) -> "BackendUpgraded":
    """Replicas move to what the recipe of today makes."""
    return gateway.post(f"/api/backends/{segment(engine)}/upgrade", {})


def set_backend_recipe(gateway: Gateway, told: Mapping[str, Any]) -> "BackendRecipeChanged":
    """Nodes install an engine by this recipe; `profile` beside it where the mesh doesn't know the engine."""
    return gateway.post("/api/backend-recipes", told)


def withdraw_backend_recipe(gateway: Gateway, engine: str) -> "BackendRecipeWithdrawn":
    """Nodes install an engine as Weft's own catalogue says, or not at all."""
    return gateway.delete(f"/api/backend-recipes/{segment(engine)}")


def tokens(gateway: Gateway) -> "Iterator[Token]":
    """All registration tokens."""
    return all_items(gateway, "/api/tokens")


def make_token(gateway: Gateway, body: Mapping[str, Any]) -> "TokenMade":
    """A registration token, with its secret."""
    return gateway.post("/api/tokens", body)


def revoke_token(gateway: Gateway, ref: str) -> "TokenChanged":
    """Nobody joins with it any more."""
    return gateway.delete(f"/api/tokens/{segment(ref)}")


def keys(gateway: Gateway, query: str = "") -> "Iterator[Key]":
    """All API keys that fit a query."""
    return all_items(gateway, "/api/keys", query)


def make_key(gateway: Gateway, body: Mapping[str, Any]) -> "KeyMade":
    """An API key, with its secret."""
    return gateway.post("/api/keys", body)


def revoke_key(gateway: Gateway, ref: str) -> "KeyChanged":
    """Nothing new begins with it."""
    return gateway.delete(f"/api/keys/{segment(ref)}")


def erase_name(gateway: Gateway, ref: str) -> "NameErased":
    """A key's name is gone; the key stays."""
    return gateway.delete(f"/api/keys/{segment(ref)}/name")


def change_request(gateway: Gateway, id: str) -> "ChangeRequest":
    """A request for change."""
    return gateway.get(f"/api/requests/{id}")


def commits(gateway: Gateway, after: int) -> "CommitPage":
    """The log's next commits behind a position."""
    return gateway.get("/api/events", after=after, limit=_PAGE)


def _node(ref: str) -> str:
    return f"/api/nodes/{segment(ref)}"


def all_items(gateway: Gateway, path: str, query: str = "") -> Iterator[Any]:
    """Every item of a list, page by page."""
    after = ""
    while True:
        parts = [query, f"limit={_PAGE}", f"after={segment(after)}" if after else ""]
        page = gateway.get(f"{path}?{'&'.join(filter(None, parts))}")
        yield from cast("list[Any]", page["items"])
        if page["next"] is None:
            return
        after = str(page["next"])
