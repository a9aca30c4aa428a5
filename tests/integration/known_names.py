"""What names something in a mesh: the path parameters and bodies that an operation of its API can take."""

import base64
import hashlib
import json
import time
from typing import Any

import httpx
from weft_identity import nkey
from weft_testing.story import MeshUnderTest, until

HANGS_S = 30.0
"""Above the 10 s that a request for change waits for its outcome."""
ONE_BY_ONE = httpx.Client(timeout=HANGS_S, limits=httpx.Limits(max_keepalive_connections=0))
"""A connection for each request: what an operation does to its connection is no other's affair."""
ALIAS = {"rule": "order", "targets": [{"model": "tiny"}]}
PROFILE = {
    "name": "passing",
    "serves": ["chat"],
    "vendors": ["cpu"],
    "claim": {"formula": "argument", "argument": "memory_bytes", "default": 1},
    "arguments": {"memory_bytes": {"type": "integer"}},
    "install": {"package": "weft-passing"},
}
RECIPE = {
    "engine": "passing",
    "variants": [
        {"vendor": "cpu", "package": "weft-passing", "version": "1", "requirements": ["weft-passing==1"], "disk": 1}
    ],
}
FETCHED = "hubs"
"""A model whose files nodes fetch, in a mesh that has one."""
SIMULATED = {"source": {"kind": "simulated"}, "engine": "simulated", "min_replicas": 0}


class Known:
    """Values that name something in this mesh, made anew where an operation takes its thing away."""

    def __init__(self, mesh: MeshUnderTest) -> None:
        self._mesh = mesh
        self._made = 0
        self._keys: dict[str, nkey.KeyPair] = {}

    def of(self, operation: str) -> dict[str, Any]:
        """Path parameters that fit an operation."""
        method, path = operation.split(" ", 1)
        if path.startswith("/api/nodes/{id}"):
            comes = (method == "DELETE" and path.endswith("{id}")) or path.endswith(("/approve", "/reject"))
            node = self.newcomer()[0] if comes else self._mesh.status()["nodes"][0]["id"]
            if "{name}" in path:
                ONE_BY_ONE.patch(f"{self._mesh.url}/api/nodes/{node}/labels", json={"zone": "a"})
                return {"id": node, "name": "zone"}
            if "{engine}" in path:
                return {"id": node, "engine": self.recipe()}
            return {"id": node}
        if path.startswith("/api/explanations/"):
            return {"ref": "tiny"}
        if path.startswith("/api/models/{ref}"):
            return {"ref": self.model() if method == "DELETE" else "tiny"}
        if path.startswith(("/api/scheduling/", "/api/nodes/scheduling/")):
            return {"model": self.model()}
        if path.startswith("/api/uploads/"):
            return {"files": "0" * 16, "name": "m.gguf"}
        if path.startswith("/api/tokens/"):
            return {"id": self._post("/api/tokens", {})["token"]}
        if path.startswith("/api/keys/"):
            return {"id": self._post("/api/keys", {"name": "passing"})["key"]}
        if path.startswith("/api/engine-profiles/"):
            return {"engine": self._post("/api/engine-profiles", PROFILE)["engine"]}
        if path.startswith("/api/secrets/"):
            name = f"passing-{self._made}"
            self._made += 1
            ONE_BY_ONE.put(f"{self._mesh.url}/api/secrets/{name}", json={"value": "open sesame"})
            return {"name": name}
        if path.startswith("/api/policies/"):
            ONE_BY_ONE.put(f"{self._mesh.url}/api/policies/passing", json={"weights": {"idle": 1}})
            return {"name": "passing"}
        if path.startswith("/api/aliases/"):
            name = f"passing-{self._made}"
            self._made += 1
            ONE_BY_ONE.put(f"{self._mesh.url}/api/aliases/{name}", json=ALIAS)
            return {"name": name}
        if path.startswith(("/api/backend-recipes/", "/api/backends/")):
            return {"engine": self.recipe()}
        if path.startswith("/api/replicas/"):
            return {"id": self._mesh.ready_replicas()[0]["id"]}
        if path.startswith("/api/requests/"):
            return {"id": self._post("/api/tokens", {})["request"]}
        return {"id": "tiny"} if "{id}" in path else {}

    def body(self, operation: str) -> dict[str, Any] | None:
        """A body that only this mesh can take; None: any that fits the document will do."""
        match operation:
            case "POST /api/node/register":
                return self._registration(nkey.KeyPair.new(nkey.Role.USER))
            case (
                "POST /api/node/credential"
                | "POST /api/node/models"
                | "POST /api/node/heartbeat"
                | "POST /api/node/drain"
                | "POST /api/node/resume"
                | "POST /api/node/deregister"
            ):
                node, key = self.newcomer()
                self._post(f"/api/nodes/{node}/approve", {})
                nonce = str(int(time.time()))
                signature = key.sign(f"weft-{operation.rsplit('/', 1)[1]}:{node}:{nonce}".encode())
                return {"node": node, "nonce": nonce, "signature": base64.b64encode(signature).decode()}
            case "PUT /api/aliases/{name}":
                return ALIAS
            case "POST /api/scheduling" | "POST /api/nodes/scheduling":
                return {"model_name": self.model(), "node_selector": {"zone": "a"}}
            case _ if operation.endswith("scheduling/{model}") and not operation.startswith(("GET", "DELETE")):
                return {"node_selector": {"zone": "a"}}
            case "POST /api/files/fetch":
                return {"model": FETCHED}
            case "POST /api/files/pin" | "POST /api/files/unpin" | "POST /api/files/remove":
                until("the model's files are on a node", lambda: self._mesh.facts("machine", "files_came"), 60)
                return {"files": FETCHED}
            case "POST /api/backend-recipes":
                return {"recipe": RECIPE, "profile": PROFILE}
            case "POST /tokenize" | "POST /v1/tokenize":
                return {"model": "tiny", "prompt": "What is the capital of France?"}
            case "POST /v1/embeddings":
                return {"model": "tiny-embed", "input": "What is the capital of France?"}
            case "POST /v1/rerank":
                return {"model": "overlap", "query": "warp and weft", "documents": ["the weft", {"text": "neither"}]}
            case "PUT /api/nodes/{id}/labels" | "PATCH /api/nodes/{id}/labels":
                return {"zone": "a"}
            case _:
                return None

    def newcomer(self) -> tuple[str, nkey.KeyPair]:
        """A machine that waits for approval, and its key."""
        key = nkey.KeyPair.new(nkey.Role.USER)
        said = ONE_BY_ONE.post(f"{self._mesh.url}/api/node/register", **self.signed(self._registration(key)))
        assert said.is_success, said.text
        return said.json()["node"], key

    def signed(self, registration: Any) -> dict[str, Any]:
        """What is sent of a registration. One that was drawn is sent without a signature."""
        content = json.dumps(registration).encode()
        sent: dict[str, Any] = {"content": content, "headers": {"content-type": "application/json"}}
        key = next((key for public, key in self._keys.items() if public in content.decode()), None)
        if key is not None:
            nonce = f"{time.time():.6f}"  # of two within a second the second is newer
            signature = key.sign(f"weft-register:{nonce}:{hashlib.sha256(content).hexdigest()}".encode())
            sent["headers"] |= {"weft-nonce": nonce, "weft-signature": base64.b64encode(signature).decode()}
        return sent

    def recipe(self) -> str:
        """An engine that this mesh was told how to install."""
        return self._post("/api/backend-recipes", {"recipe": RECIPE, "profile": PROFILE})["engine"]

    def model(self) -> str:
        """A model without replicas."""
        self._made += 1
        name = f"passing-{self._made}"
        self._post("/api/models", {"name": name, "spec": SIMULATED})
        return name

    def _registration(self, key: nkey.KeyPair) -> dict[str, Any]:
        self._made += 1
        self._keys[key.public] = key
        token = self._post("/api/tokens", {})["secret"]
        where = {"host": "127.0.0.1", "http_port": 9}
        return {"token": token, "name": f"newcomer-{self._made}", "public_key": key.public, "addresses": where}

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        said = ONE_BY_ONE.post(f"{self._mesh.url}{path}", json=body)
        assert said.is_success, said.text
        return said.json()
