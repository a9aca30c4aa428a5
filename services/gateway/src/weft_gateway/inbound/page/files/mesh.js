// The mesh as it stands: figures, what needs attention, models with their replicas, nodes.

import { keep, make, pill, say, sayOrHide } from "./elements.js";
import { count, replicaName, sentence, shell, size, toneOf, word } from "./words.js";

const NODES_SHOWN = 48;
const REPLICAS_SHOWN = 12;
const TROUBLES_SHOWN = 8;
const ORDER = ["bad", "warn", "wait", "idle", "good"]; // what needs an eye comes first
const rank = (state) => ORDER.indexOf(toneOf(state));
const inOrder = (all) => [...all].sort((a, b) => rank(a.state) - rank(b.state) || a.name.localeCompare(b.name));
const at = (id) => document.getElementById(id);

/** Show an answer of /api/status. */
export function showMesh(status) {
  showFigures(status);
  showProblems(status);
  const replicas = grouped(status.replicas);
  keep(at("models"), inOrder(status.models), (m) => m.id, modelCard);
  for (const card of at("models").children) card.showReplicas(replicas.get(card.dataset.key) ?? []);
  at("no-models").hidden = status.models.length > 0;
  const nodes = inOrder(status.nodes);
  const claims = claimed(status.replicas);
  keep(at("nodes"), nodes.slice(0, NODES_SHOWN), (n) => n.id, nodeCard);
  for (const card of at("nodes").children) card.showClaims(claims.get(card.dataset.key));
  at("no-nodes").hidden = nodes.length > 0;
  const more = nodes.length - NODES_SHOWN;
  sayOrHide(at("more-nodes"), more > 0 ? `and ${count(more, "more node")}, all ${nodes.at(-1).state}` : "");
}

function showFigures({ models, nodes, requests, log }) {
  const of = (list, state) => `${list.filter((each) => each.state === state).length} of ${list.length}`;
  say(at("figure-models"), of(models, "ready"));
  say(at("figure-nodes"), of(nodes, "healthy"));
  say(at("figure-requests"), requests.waiting ? `${requests.running}, ${requests.waiting} waiting` : `${requests.running}`);
  say(at("figure-events"), log.position.toLocaleString("en"));
}

/** What needs an eye: the mesh's own troubles in full, those of models and nodes by name; their cards say why. */
function showProblems({ mesh, models, nodes }) {
  const troubled = [
    ...models.filter(inTrouble).map((m) => ({ name: m.name, state: `is ${word(m.state)}`, card: `model-${m.id}` })),
    ...nodes.filter((n) => inTrouble(n) || !n.approved).map((n) => ({ name: n.name, state: n.approved ? `is ${word(n.state)}` : standing(n), card: `node-${n.id}` })),
  ];
  const onCards = [...models.map((m) => `model ${m.name} is `), ...nodes.map((n) => `node ${n.name} `)];
  const own = mesh.problems.filter((text) => !onCards.some((start) => text.startsWith(start)));
  const notices = own.map((text) => ({ text, brake: mesh.brake !== null && text.startsWith("the brake") }));
  if (troubled.length) notices.push({ text: "", troubled });
  keep(at("notices"), notices, (n) => n.text, notice);
}

function notice() {
  const title = make("strong"), text = make("span");
  const node = make("p", { children: [title, " ", text] });
  let shown = "";
  node.show = ({ text: said, brake, troubled = [] }) => {
    node.className = `notice ${brake ? "brake" : "warn"}`;
    say(title, brake ? "Brake set" : "Needs attention");
    const key = JSON.stringify([said, troubled]);
    if (key === shown) return;
    shown = key;
    const named = troubled.slice(0, TROUBLES_SHOWN).flatMap(({ name, state, card }, index) => [
      index ? ", " : "", make("a", { text: name, attrs: { href: `#${card}` } }), ` ${state}`,
    ]);
    const more = troubled.length - TROUBLES_SHOWN;
    if (more > 0) named.push(`, and ${more.toLocaleString("en")} more`);
    text.replaceChildren(sentence(said.replace(/^the brake is set: /, "")), ...named);
  };
  return node;
}

const inTrouble = ({ state }) => ["bad", "warn"].includes(toneOf(state));
const standing = ({ state, approved }) => (approved ? state : "waits for approval");

function modelCard() {
  const name = make("h3"), state = make("span"), about = make("p", { cls: "about" });
  const reason = make("p", { cls: "reason" });
  const remedy = make("p", { cls: "hint" }), line = make("code");
  remedy.append("When the cause is gone: ", line);
  const replicas = make("ul", { cls: "replicas" }), more = make("p", { cls: "hint" });
  const node = make("li", {
    children: [make("div", { cls: "title", children: [name, state] }), about, reason, remedy, replicas, more],
  });
  node.show = (model) => {
    node.id = `model-${model.id}`;
    say(name, model.name);
    pill(state, toneOf(model.state), model.state === "empty" ? "no replicas" : word(model.state));
    const { engine, context_tokens } = model.spec;
    const context = context_tokens ? `, ${context_tokens.toLocaleString("en")} tokens of context` : "";
    say(about, `${engine}, revision ${model.revision}${context}. ${model.wanted ? `${model.ready} of ${count(model.wanted, "replica")} ready.` : "No replica."}`);
    sayOrHide(reason, model.reason && sentence(model.reason));
    reason.className = `reason ${toneOf(model.state)}`;
    remedy.hidden = model.state !== "unservable";
    say(line, `./weft retry ${shell(model.name)}`);
    node.reason = model.reason;
  };
  node.showReplicas = (all) => {
    const own = [...all].sort((a, b) => rank(a.state) - rank(b.state));
    keep(replicas, own.slice(0, REPLICAS_SHOWN), (r) => r.id, replicaRow);
    for (const row of replicas.children) row.hideReason(node.reason);
    replicas.hidden = own.length === 0;
    const left = own.length - REPLICAS_SHOWN;
    sayOrHide(more, left > 0 ? `and ${count(left, "more replica")}` : "");
  };
  return node;
}

function replicaRow() {
  const name = make("span", { cls: "name" }), where = make("span", { cls: "where" });
  const state = make("span"), reason = make("p", { cls: "reason" });
  const node = make("li", { children: [name, where, state, reason] });
  node.show = (replica) => {
    say(name, replicaName(replica.id, replica.model_name));
    name.title = replica.id;
    const bytes = replica.members.flatMap((m) => m.devices).reduce((sum, d) => sum + d.bytes, 0);
    const place = replica.node_name ? `on ${replica.node_name}` : "no place yet";
    say(where, bytes ? `${place}, ${size(bytes)}` : place);
    const leaving = !replica.wanted && replica.state !== "stopped";
    pill(state, leaving ? "idle" : toneOf(replica.state), leaving ? `${word(replica.state)}, retiring` : word(replica.state));
    node.reason = replica.reason ?? (replica.shunned ? `not asked now: ${replica.shunned}` : "");
    sayOrHide(reason, node.reason && sentence(node.reason));
    reason.className = `reason ${toneOf(replica.state)}`;
  };
  // What the model says already is not said twice.
  node.hideReason = (said) => {
    if (node.reason && node.reason === said) reason.hidden = true;
  };
  return node;
}

function nodeCard() {
  const name = make("h3"), state = make("span"), about = make("p", { cls: "about" });
  const bar = make("span", { cls: "bar-fill" }), held = make("p", { cls: "hint" });
  const meter = make("div", { cls: "bar-track", attrs: { "aria-hidden": "true" }, children: [bar] });
  const node = make("li", {
    children: [make("div", { cls: "title", children: [name, state] }), about, meter, held],
  });
  let total = 0;
  node.show = (shape) => {
    node.id = `node-${shape.id}`;
    say(name, shape.name);
    name.title = shape.id;
    pill(state, toneOf(shape.state), word(standing(shape)));
    const hardware = shape.hardware;
    const devices = (hardware?.devices ?? []).filter((d) => d.vendor !== "cpu");
    total = (devices.length ? devices : (hardware?.devices ?? [])).reduce((sum, d) => sum + d.memory, 0);
    say(about, hardware ? sentence([...accelerators(devices), count(Math.round(hardware.cpus), "CPU"),
      `${size(hardware.memory)} of memory`].join(", ")) : "Its hardware is not known yet.");
  };
  node.showClaims = (claim) => {
    meter.hidden = !total;
    bar.style.inlineSize = total ? `${Math.min(100, (100 * (claim?.bytes ?? 0)) / total)}%` : "0";
    say(held, claim ? `${count(claim.replicas, "replica")}, ${size(claim.bytes)}${total ? ` of ${size(total)}` : ""} claimed`
      : "No replica.");
  };
  return node;
}

/** Devices by their name, with how many there are. */
function accelerators(devices) {
  const names = new Map();
  for (const { name, vendor } of devices) names.set(name || vendor, (names.get(name || vendor) ?? 0) + 1);
  return [...names].map(([name, number]) => (number > 1 ? `${number} × ${name}` : name));
}

/** What replicas hold on each node. */
function claimed(replicas) {
  const held = new Map();
  for (const replica of replicas) {
    for (const { node, devices } of replica.members) {
      const own = held.get(node) ?? { replicas: 0, bytes: 0 };
      own.replicas += 1;
      own.bytes += devices.reduce((sum, device) => sum + device.bytes, 0);
      held.set(node, own);
    }
  }
  return held;
}

function grouped(replicas) {
  const groups = new Map();
  for (const each of replicas) groups.set(each.model, [...(groups.get(each.model) ?? []), each]);
  return groups;
}
