"""Who may be in the mesh: tokens, names, keys, approval."""

import base64

import pytest
from weft_contracts import subjects
from weft_contracts.codec import encode
from weft_contracts.facts.name import Claimed
from weft_contracts.facts.node import Approved, Joined, Rejoined, Removed
from weft_contracts.facts.request import ApprovalRequested, Fulfilled, JoinRequested, Rejected
from weft_contracts.facts.values import Addresses
from weft_contracts.ids import NodeId, TokenId, token_hash, token_id
from weft_identity.authority import new_key, public_der
from weft_registry.domain.founding import BootstrapToken
from weft_registry.domain.join import MAX_NAME
from weft_registry.domain.labels import MAX_LABEL, MAX_LABELS

from .registry_story import HERE, Story, nkey, node


@pytest.fixture
def story() -> Story:
    return Story()


def refusal(outcome: object) -> tuple[int, str]:
    assert isinstance(outcome, Rejected)
    return outcome.status, outcome.reason


# the mesh's first facts


def test_a_new_log_is_founded_once(story: Story) -> None:
    assert ["founded"] == [fact.type for fact in story.log.facts(subjects.MESH) if fact.type != "format_raised"]
    assert [] == story.decided()


def test_the_launchers_token_is_created_once_and_approves(story: Story) -> None:
    # given
    bootstrap = BootstrapToken(token_id("x"), token_hash("x"))
    # when
    story.log.take(story.decided(token=bootstrap))
    # then
    assert [] == story.decided(token=bootstrap)
    assert isinstance(story.join(1, bootstrap.id), Fulfilled)
    assert story.view(1).approved


# joining


def test_a_node_that_joins_with_an_approving_token_is_approved_in_the_same_commit(story: Story) -> None:
    outcome = story.join(1, story.token())
    assert Fulfilled(result={"node": node(1)}) == outcome
    assert [Joined, Approved] == [type(fact) for fact in story.log.facts(subjects.node(node(1)))]
    assert (True, "joined", "pending") == (story.view(1).approved, story.view(1).presence, story.view(1).state)


def test_a_node_that_joins_without_approval_has_a_name_and_no_rights(story: Story) -> None:
    story.join(1, story.token(approves=False))
    assert [Joined] == [type(fact) for fact in story.log.facts(subjects.node(node(1)))]
    assert [Claimed(name="node-1", owner=node(1))] == story.log.facts(subjects.name("node", "node-1"))
    assert not story.view(1).approved


def test_the_chain_of_causes_leads_back_to_the_request(story: Story) -> None:
    story.join(1, story.token())
    request, *answers = story.log.commits[-4:]
    assert ["node", "name", "request"] == [commit.aggregate.kind for commit in answers]
    assert {(request.event_id, request.correlation_id)} == {(c.causation_id, c.correlation_id) for c in answers}


@pytest.mark.parametrize("which", ["unknown", "revoked", "expired"])
def test_a_token_that_is_no_good_is_refused_with_401(story: Story, which: str) -> None:
    # given
    id = TokenId("t-unknown")
    if which != "unknown":
        id = story.token(expires_at=story.log.now - 1 if which == "expired" else None)
    if which == "revoked":
        story.revoke(id)
    # when
    status, reason = refusal(story.join(1, id))
    # then
    assert (401, True) == (status, "ask for a new one" in reason)
    assert {} == story.state.fleet.nodes


def test_a_token_is_good_until_it_expires(story: Story) -> None:
    id = story.token(expires_at=story.log.now + 1)
    assert isinstance(story.join(1, id), Fulfilled)
    story.log.now += 1
    assert 401 == refusal(story.join(2, id))[0]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "n" * (MAX_NAME + 1)}, "1 to 255 printable characters, this one 256"),
        ({"name": ""}, "this one 0"),
        ({"name": "a\nb"}, "printable"),
        ({"addresses": Addresses(host="", http_port=1)}, "at which address"),
        ({"addresses": Addresses(host="h" * 256, http_port=1)}, "1 to 255 characters"),
        ({"addresses": Addresses(host="h", http_port=65536)}, "1 to 65535"),
        ({"labels": {str(n): "" for n in range(MAX_LABELS + 1)}}, "at most 64 labels, this one 65"),
        ({"labels": {"": "x"}}, "1 to 63 characters"),
        ({"labels": {"x": "y" * (MAX_LABEL + 1)}}, "at most 63"),
        ({"public_key": "U" * 10}, "nkey user key"),
        ({"public_key": "U" * 56}, "nkey user key"),
        ({"public_key": nkey(1)[:-1] + ("A" if nkey(1)[-1] != "A" else "B")}, "checksum"),
        ({"public_key": nkey(1).lower()}, "nkey user key"),
        ({"public_key": "ä" * 56}, "nkey user key"),
    ],
)
def test_what_a_machine_says_wrongly_of_itself_is_refused_with_400_in_one_sentence(
    story: Story, fields: dict[str, object], says: str
) -> None:
    status, reason = refusal(story.join(1, story.token(), **fields))
    assert (400, True) == (status, says in reason)
    assert "\n" not in reason
    assert {} == story.state.fleet.nodes


def test_the_longest_words_about_oneself_fit_into_a_commit(story: Story) -> None:
    # given the longest that is let through, in characters that take the most room
    labels = {f"{n:02}" + "\x00" * (MAX_LABEL - 2): "\x00" * MAX_LABEL for n in range(MAX_LABELS)}
    fact = JoinRequested(
        token=story.token(),
        name="\U0001f9f5" * MAX_NAME,
        public_key=nkey(1),
        addresses=Addresses(host="\x00" * 255, http_port=1),
        labels=labels,
    )
    story.ask(fact)
    # then the log takes each commit of the answer
    (decision,) = story.decided()
    assert all(encode(commit) for commit in decision.commits)
    assert isinstance(story.log.take([decision])[-1].facts[0], Fulfilled)


def test_the_same_name_with_another_key_is_refused_with_409(story: Story) -> None:
    id = story.token()
    story.join(1, id, name="a")
    status, reason = refusal(story.join(2, id, name="a"))
    assert (409, True) == (status, "'a'" in reason)
    assert [node(1)] == list(story.state.fleet.nodes)


def test_two_that_ask_for_one_name_at_once_get_one_yes_and_one_409(story: Story) -> None:
    id = story.token()
    requests = [story.ask(JoinRequested(token=id, name="a", public_key=nkey(n), addresses=HERE)) for n in (1, 2)]
    story.settle()
    first, second = (story.log.facts(request)[-1] for request in requests)
    assert isinstance(first, Fulfilled)
    assert 409 == refusal(second)[0]


def test_the_same_key_again_is_the_same_node_with_what_it_says_now(story: Story) -> None:
    # given
    id = story.token(approves=False)
    story.join(1, id, labels={"disk": "slow"})
    # when
    there = Addresses(host="10.0.0.1", http_port=1)
    outcome = story.join(1, id, labels={"disk": "fast"}, addresses=there)
    # then
    assert Fulfilled(result={"node": node(1)}) == outcome
    assert [Joined, Rejoined] == [type(fact) for fact in story.log.facts(subjects.node(node(1)))]
    assert (there, {"disk": "fast"}) == (story.view(1).addresses, story.view(1).own_labels)
    # and it is still pending
    assert ("pending", False) == (story.view(1).presence, story.view(1).approved)


def test_a_node_keeps_its_name(story: Story) -> None:
    id = story.token()
    story.join(1, id, name="a")
    assert 409 == refusal(story.join(1, id, name="b"))[0]
    assert "a" == story.view(1).name


def test_a_node_is_of_the_kind_that_it_joined_as(story: Story) -> None:
    id = story.token()
    story.join(1, id, node_kind="agent")
    assert "agent" == story.view(1).kind
    assert isinstance(story.join(1, id, node_kind="agent"), Fulfilled)
    status, reason = refusal(story.join(1, id))
    assert (409, True) == (status, "of the kind agent" in reason)


def test_a_pending_node_that_comes_again_with_an_approving_token_is_approved(story: Story) -> None:
    story.join(1, story.token("plain", approves=False))
    story.join(1, story.token("good", approves=True))
    assert story.view(1).approved


def test_an_approved_node_that_comes_again_stays_approved_and_is_not_approved_twice(story: Story) -> None:
    id = story.token()
    story.join(1, id)
    story.join(1, id)
    assert story.view(1).approved
    assert 1 == sum(isinstance(fact, Approved) for fact in story.log.facts())


def test_a_removed_node_needs_a_new_key(story: Story) -> None:
    id = story.token()
    story.join(1, id)
    story.log.given(subjects.node(node(1)), Removed(why="test"))
    assert 403 == refusal(story.join(1, id))[0]


# approval


def test_an_admins_approval_is_recorded_once(story: Story) -> None:
    # given
    story.join(1, story.token(approves=False))
    # when
    assert isinstance(story.approve(node(1)), Fulfilled)
    # then
    assert [Approved(by="gateway")] == [f for f in story.log.facts() if isinstance(f, Approved)]
    # and a second one is refused
    assert (409, True) == (lambda r: (r[0], "approved already" in r[1]))(refusal(story.approve(node(1))))


def test_two_approvals_at_once_approve_once(story: Story) -> None:
    story.join(1, story.token(approves=False))
    requests = [story.ask(ApprovalRequested(node=node(1))) for _ in range(2)]
    story.settle()
    assert [Fulfilled, Rejected] == [type(story.log.facts(request)[-1]) for request in requests]


def test_an_approval_of_nobody_is_refused_with_404(story: Story) -> None:
    assert 404 == refusal(story.approve(NodeId("n-nobody")))[0]


# the keys of certificates


def certificate_key() -> str:
    return base64.b64encode(public_der(new_key())).decode()


def test_a_node_keeps_the_key_of_its_certificates_until_it_joins_with_another_or_is_removed(story: Story) -> None:
    first, second = certificate_key(), certificate_key()
    id = story.token()
    assert isinstance(story.join(1, id, certificate_key=first), Fulfilled)
    assert {node(1): first} == story.state.certificate_keys
    assert isinstance(story.join(1, id, certificate_key=second), Fulfilled)
    assert {node(1): second} == story.state.certificate_keys
    story.log.given(subjects.node(node(1)), Removed(why="gone"))
    assert {} == story.state.certificate_keys


def test_what_is_no_key_of_a_certificate_is_refused(story: Story) -> None:
    status, why = refusal(story.join(1, story.token(), certificate_key="AAAA"))
    assert 400 == status
    assert "on the curve P-256" in why


@pytest.mark.parametrize("name", ["scheduling", "Scheduling"])
def test_no_node_bears_a_name_that_the_api_means_otherwise(story: Story, name: str) -> None:
    outcome = story.join(1, story.token(), name=name)
    assert (400, f"no node can be called {name!r}, which the API means otherwise: choose another") == refusal(outcome)
