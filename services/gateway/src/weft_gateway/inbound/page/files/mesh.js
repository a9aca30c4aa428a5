// The mesh as it stands: figures, what needs attention, models with their replicas, nodes.

import { showAliases } from "./aliases.js";
import { keep, make, pill, say, sayOrHide } from "./elements.js";
import { count, replicaName, sentence, shell, size, toneOf, word } from "./words.js";

const TROUBLES_SHOWN = 8;
const PROCESSOR = 0; // its index on every node
const ORDER = ["bad", "warn", "wait", "idle", "good"]; // what needs an eye comes first
/** @typedef {Record<string, number>} Figures By state */

const rank = (/** @type {string} */ state) => ORDER.indexOf(toneOf(state));
/** @template {{state: string, name: string}} T @param {T[]} all */
const inOrder = (all) => [...all].sort((a, b) => rank(a.state) - rank(b.state) || a.name.localeCompare(b.name));
/** @type {(id: string) => any} */
const at = (id) => document.getElementById(id);

/** Show an answer of /api/status?view=page: the first nodes and replicas, and counts of all. @param {API.StatusPage} status */
export function showMesh(status) {
  showFigures(status);
  showProblems(status);
  const replicas = grouped(status.replicas);
  keep(at("models"), inOrder(status.models), (m) => m.id, modelCard);
  for (const card of at("models").children) {
    card.showReplicas(replicas.get(card.dataset.key) ?? [], status);
    card.showPrompts(status.no_tokenizer[card.dataset.key]);
  }
  showAliases(at("aliases"), status.aliases);
  at("no-models").hidden = status.models.length > 0;
  const nodes = inOrder(status.nodes);
  keep(at("nodes"), nodes, (n) => n.id, nodeCard);
  for (const card of at("nodes").children) card.showClaims(status.claims[card.dataset.key]);
  at("no-nodes").hidden = nodes.length > 0;
  sayOrHide(at("more-nodes"), hiddenNodes(status));
}

/** How many nodes are not shown, by their state. @param {API.StatusPage} status */
function hiddenNodes({ nodes, counts }) {
  const shown = (/** @type {string} */ state) => nodes.filter((each) => each.state === state).length;
  /** @type {[string, number][]} */
  const all = Object.entries(counts.nodes).map(([state, n]) => [state, n - shown(state)]);
  const left = all.filter(([, n]) => n > 0);
  if (!left.length) return "";
  const more = count(total(left.map(([, n]) => n)), "more node");
  if (left.length === 1) return `and ${more}, all ${word(left[0][0])}`;
  return `and ${more}: ${left.map(([state, n]) => `${n.toLocaleString("en")} ${word(state)}`).join(", ")}`;
}

const total = (/** @type {number[]} */ numbers) => numbers.reduce((sum, each) => sum + each, 0);

/** @param {API.StatusPage} status */
function showFigures({ counts, requests, log }) {
  const of = (/** @type {Figures} */ states, /** @type {string} */ good) => [states[good] ?? 0, total(Object.values(states))].map((n) => n.toLocaleString("en")).join(" of ");
  say(at("figure-models"), of(counts.models, "ready"));
  say(at("figure-nodes"), of(counts.nodes, "healthy"));
  say(at("figure-requests"), requests.waiting ? `${requests.running}, ${requests.waiting} waiting` : `${requests.running}`);
  say(at("figure-events"), log.position.toLocaleString("en"));
}

/** What needs an eye: the mesh's own troubles in full, those of models and nodes by name; their cards say why. @param {API.StatusPage} status */
function showProblems({ mesh, models, nodes, counts }) {
  const troubled = [
    ...models.filter((m) => inTrouble(m) || m.failing).map((m) => ({ name: m.name, state: modelTrouble(m), card: `model-${m.id}` })),
    ...nodes.filter((n) => inTrouble(n) || !n.approved).map((n) => ({ name: n.name, state: n.approved ? `is ${word(n.state)}` : standing(n), card: `node-${n.id}` })),
  ];
  const badly = Object.entries(counts.nodes).filter(([state]) => inTrouble({ state })).map(([, n]) => n);
  const unseen = Math.max(0, total(badly) - nodes.filter(inTrouble).length);
  /** @type {Notice[]} */
  const notices = mesh.problems.map((text) => ({ text, brake: mesh.brake !== null && text.startsWith("the brake") }));
  if (troubled.length) notices.push({ text: "", troubled, unseen });
  keep(at("notices"), notices, (n) => n.text, notice);
}

/**
 * @typedef {{text: string, brake?: boolean, troubled?: {name: string, state: string, card: string}[], unseen?: number}} Notice
 */

function notice() {
  const title = make("strong"), text = make("span");
  const node = make("p", { children: [title, " ", text] });
  let shown = "";
  node.show = (/** @type {Notice} */ { text: said, brake, troubled = [], unseen = 0 }) => {
    node.className = `notice ${brake ? "brake" : "warn"}`;
    say(title, brake ? "Brake set" : "Needs attention");
    const key = JSON.stringify([said, troubled, unseen]);
    if (key === shown) return;
    shown = key;
    const named = troubled.slice(0, TROUBLES_SHOWN).flatMap(({ name, state, card }, index) => [
      index ? ", " : "", make("a", { text: name, attrs: { href: `#${card}` } }), ` ${state}`,
    ]);
    const more = Math.max(0, troubled.length - TROUBLES_SHOWN) + unseen;
    if (more > 0) named.push(`, and ${more.toLocaleString("en")} more`);
    text.replaceChildren(sentence(said.replace(/^the brake is set: /, "")), ...named);
  };
  return node;
}

const modelTrouble = (/** @type {API.Model} */ model) =>
  inTrouble(model) ? `is ${word(model.state)}` : `can't serve revision ${model.failing?.revision}`;
const inTrouble = (/** @type {{state: string}} */ { state }) => ["bad", "warn"].includes(toneOf(state));
const standing = (/** @type {API.Node} */ { state, approved }) => (approved || state === "rejected" ? state : "waits for approval");

function modelCard() {
  const name = make("h3"), state = make("span"), about = make("p", { cls: "about" });
  const source = make("p", { cls: "about" }), reason = make("p", { cls: "reason" });
  const prompts = make("p", { cls: "reason warn" });
  const remedy = make("p", { cls: "hint" }), line = make("code");
  remedy.append("When the cause is gone: ", line);
  const replicas = make("ul", { cls: "replicas" }), more = make("p", { cls: "hint" });
  const node = make("li", {
    children: [make("div", { cls: "title", children: [name, state] }), about, source, reason, prompts, remedy, replicas, more],
  });
  node.show = (/** @type {API.Model} */ model) => {
    node.id = `model-${model.id}`;
    say(name, model.name);
    pill(state, toneOf(model.state), model.state === "empty" ? "no replicas" : word(model.state));
    const { engine, context_tokens } = model.spec;
    const context = context_tokens ? `, ${context_tokens.toLocaleString("en")} tokens of context` : "";
    say(about, `${engine}, revision ${model.serves ?? model.revision}${context}. ${model.wanted ? `${model.ready} of ${count(model.wanted, "replica")} ready.` : "No replica."}`);
    sayOrHide(source, model.spec.source.kind === "simulated" ? "" : `From ${model.source}`);
    sayOrHide(reason, model.reason && sentence(model.reason));
    reason.className = `reason ${model.failing ? "bad" : toneOf(model.state)}`;
    remedy.hidden = model.state !== "unservable" && !model.failing;
    say(line, `./weft retry ${shell(model.name)}`);
    node.reason = model.reason;
  };
  // Its gateway's own trouble with it, which leaves the model itself as it is.
  node.showPrompts = (/** @type {string | undefined} */ why) =>
    sayOrHide(prompts, why && sentence(`no tokenizer here: ${why}`));
  node.showReplicas = (/** @type {API.ShownReplicaLine[]} */ some, /** @type {API.StatusPage} */ { counts, nodes, progress }) => {
    const own = [...some].sort((a, b) => rank(a.state) - rank(b.state));
    keep(replicas, own, (r) => r.id, replicaRow);
    const said = [node.reason];
    for (const row of replicas.children) {
      row.showProgress(progress[row.dataset.key], nodes);
      row.hideReason(said);
      said.push(row.reason);
    }
    replicas.hidden = own.length === 0;
    const left = (counts.replicas[node.dataset.key] ?? 0) - own.length;
    sayOrHide(more, left > 0 ? `and ${count(left, "more replica")}` : "");
  };
  return node;
}

/** What would give a replica a place, where it has none: shown by `show(replica)`, asked for by who opens it. */
function remedies() {
  const about = make("p", { cls: "hint", attrs: { role: "status" } }), list = make("ul");
  const node = make("details", { cls: "remedies", children: [make("summary", { text: "What would give it a place" }), about, list] });
  let id = "", reason = "", looks = 0;
  const look = async () => {
    const turn = ++looks;
    sayOrHide(about, "Looking…");
    try {
      const { showRemedies } = await import("./remedies.js");
      await showRemedies(id, about, list, () => turn === looks);
    } catch {
      sayOrHide(about, "The gateway doesn't answer; open this again.");
    }
  };
  node.addEventListener("toggle", () => node.open && look());
  node.show = (/** @type {API.ShownReplicaLine} */ replica) => {
    const other = id !== replica.id || reason !== (replica.reason ?? "");
    [id, reason] = [replica.id, replica.reason ?? ""];
    node.hidden = replica.state !== "unplaceable" || !replica.wanted;
    if (other && node.open && !node.hidden) look();
  };
  return node;
}

function replicaRow() {
  const name = make("span", { cls: "name" }), where = make("span", { cls: "where" });
  const state = make("span"), reason = make("p", { cls: "reason" });
  const about = make("p", { cls: "reason" }), devices = make("p", { cls: "hint" });
  const bar = make("span", { cls: "bar-fill" });
  const meter = make("div", { cls: "bar-track", attrs: { "aria-hidden": "true" }, children: [bar] });
  const ways = remedies();
  const node = make("li", { children: [name, where, state, about, meter, devices, reason, ways] });
  let place = "", claimed = 0;
  /** @type {API.Member[]} */
  let members = [];
  node.show = (/** @type {API.ShownReplicaLine} */ replica) => {
    say(name, replicaName(replica.id, replica.model_name));
    name.title = replica.id;
    place = replica.node_name ? `on ${replica.node_name}` : "no place yet";
    claimed = replica.bytes;
    members = replica.members;
    const leaving = !replica.wanted && replica.state !== "stopped";
    pill(state, leaving ? "idle" : toneOf(replica.state), leaving ? `${word(replica.state)}, retiring` : word(replica.state));
    node.reason = replica.reason ?? (replica.shunned ? `not asked now: ${replica.shunned}` : "");
    sayOrHide(reason, node.reason && sentence(node.reason));
    reason.className = `reason ${toneOf(replica.state)}`;
    ways.show(replica);
  };
  // What its nodes say of it beside the log: what it waits for, and what it holds of the devices that it claims.
  node.showProgress = (/** @type {API.ReplicaProgress | undefined} */ said, /** @type {API.Node[]} */ nodes) => {
    const uses = said?.devices ?? claims(members, nodes);
    const named = uses.length > 1 || uses.some(({ index }) => index !== PROCESSOR);
    const used = named ? null : (uses[0]?.used ?? null);
    say(where, claimed ? `${place}, ${used === null ? size(claimed) : `${size(used)} of ${size(claimed)}`}` : place);
    sayOrHide(devices, named ? uses.map(held).join("; ") : "");
    sayOrHide(about, said?.about && sentence(said.about));
    about.className = `reason ${said?.install?.overdue ? "warn" : "wait"}`;
    const { install, fetch, load } = said ?? {};
    const moved = install ?? fetch;
    const [done, all] = moved ? [moved.fetched, moved.total] : [load?.taken, load?.total];
    meter.hidden = !said?.about || !all;
    bar.style.inlineSize = all ? `${Math.min(100, (100 * (done ?? 0)) / all)}%` : "0";
  };
  // What the model, or a replica above, says already is not said twice.
  node.hideReason = (/** @type {(string | null)[]} */ [model, ...above]) => {
    const again = node.reason && above.some((each) => each?.includes(node.reason));
    if (again) ways.hidden = true;
    if (again || (node.reason && model?.includes(node.reason))) reason.hidden = true;
  };
  return node;
}

/** What a replica claims, where nobody says what it holds. @param {API.Member[]} members @param {API.Node[]} nodes @returns {API.DeviceUse[]} */
function claims(members, nodes) {
  return members.flatMap(({ node, devices }) => {
    const shape = nodes.find(({ id }) => id === node);
    return devices.map(({ index, bytes }) => ({
      node, node_name: shape?.name ?? "", index, claimed: bytes, used: null,
      name: shape?.hardware?.devices.find((each) => each.index === index)?.name ?? "",
    }));
  });
}

/** @param {API.DeviceUse} device */
const held = ({ index, name, claimed, used }) =>
  `${name || "device"} #${index}: ${used === null ? `${size(claimed)} claimed` : `${size(used)} of ${size(claimed)}`}`;

function nodeCard() {
  const name = make("h3"), state = make("span"), about = make("p", { cls: "about" }), reason = make("p");
  const bar = make("span", { cls: "bar-fill" }), held = make("p", { cls: "hint" });
  const meter = make("div", { cls: "bar-track", attrs: { "aria-hidden": "true" }, children: [bar] });
  const node = make("li", {
    children: [make("div", { cls: "title", children: [name, state] }), about, reason, meter, held],
  });
  let memory = 0;
  node.show = (/** @type {API.Node} */ shape) => {
    node.id = `node-${shape.id}`;
    say(name, shape.name);
    name.title = shape.id;
    pill(state, toneOf(shape.state), word(standing(shape)));
    sayOrHide(reason, shape.reason && sentence(shape.reason));
    reason.className = `reason ${toneOf(shape.state)}`;
    const hardware = shape.hardware;
    const devices = (hardware?.devices ?? []).filter((d) => d.vendor !== "cpu");
    memory = total((devices.length ? devices : (hardware?.devices ?? [])).map((d) => d.memory));
    say(about, hardware ? sentence([...accelerators(devices), count(Number(hardware.cpus.toFixed(1)), "CPU"),
      `${size(hardware.memory)} of memory`].join(", ")) : "Its hardware is not known yet.");
  };
  node.showClaims = (/** @type {API.Claim | undefined} */ claim) => {
    meter.hidden = !memory;
    bar.style.inlineSize = memory ? `${Math.min(100, (100 * (claim?.bytes ?? 0)) / memory)}%` : "0";
    say(held, claim?.replicas ? `${count(claim.replicas, "replica")}, ${size(claim.bytes)}${memory ? ` of ${size(memory)}` : ""} claimed`
      : "No replica.");
  };
  return node;
}

/** Devices by their name, with how many there are. @param {API.Device[]} devices */
function accelerators(devices) {
  const names = new Map();
  for (const { name, vendor } of devices) names.set(name || vendor, (names.get(name || vendor) ?? 0) + 1);
  return [...names].map(([name, number]) => (number > 1 ? `${number} × ${name}` : name));
}

/** @param {API.ShownReplicaLine[]} replicas @returns {Map<string, API.ShownReplicaLine[]>} */
function grouped(replicas) {
  const groups = new Map();
  for (const each of replicas) groups.set(each.model, [...(groups.get(each.model) ?? []), each]);
  return groups;
}
