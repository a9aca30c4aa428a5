// Models' files that nodes fetch: on which nodes they lie, how far they are where they come, and why they don't.

import { keep, make, pill, say, sayOrHide } from "./elements.js";
import { ask } from "./key.js";
import { count, sentence, size, toneOf, word } from "./words.js";

const LOOK_LIMIT_S = 8;
const SHOWN = 20;
/** @type {(id: string) => any} */
const at = (id) => document.getElementById(id);
let looking = false;

/** Look at them, and show them. Where that can't be had now, all stays as it was: the next look follows soon. */
export async function lookAtFiles() {
  if (looking) return;
  looking = true;
  try {
    const response = await ask(`/api/files?limit=${SHOWN}`, { cache: "no-cache", signal: AbortSignal.timeout(LOOK_LIMIT_S * 1000) });
    if (response.ok) showFiles(await response.json());
  } catch {
    // away: the link says so
  } finally {
    looking = false;
  }
}

/** @param {API.ModelFilesPage} page */
function showFiles({ items, next }) {
  const byName = [...items].sort((a, b) => (a.models[0] ?? "~").localeCompare(b.models[0] ?? "~"));
  keep(at("files"), byName, (each) => each.files, filesCard);
  at("files-panel").hidden = items.length === 0;
  sayOrHide(at("more-files"), next === null ? "" : "There are more: ./weft files lists them all.");
}

function filesCard() {
  const name = make("h3"), bytes = make("span", { cls: "where" }), about = make("p", { cls: "about" });
  const nodes = make("ul", { cls: "replicas" });
  const node = make("li", { children: [make("div", { cls: "title", children: [name, bytes] }), about, nodes] });
  node.show = (/** @type {API.ModelFiles} */ files) => {
    say(name, files.models.join(", ") || "Of no model any more");
    name.title = files.files;
    say(bytes, size(files.bytes));
    const here = files.nodes.filter(({ state }) => state === "here").length;
    say(about, sentence(`${files.source ? `From ${files.source}, ` : ""}on ${here ? count(here, "node") : "no node"}`));
    keep(nodes, files.nodes, (each) => each.node, nodeRow);
    nodes.hidden = files.nodes.length === 0;
  };
  return node;
}

function nodeRow() {
  const name = make("span", { cls: "name" }), where = make("span", { cls: "where" }), state = make("span");
  const about = make("p");
  const bar = make("span", { cls: "bar-fill" });
  const meter = make("div", { cls: "bar-track", attrs: { "aria-hidden": "true" }, children: [bar] });
  const node = make("li", { children: [name, where, state, about, meter] });
  node.show = (/** @type {API.FilesOnNode} */ one) => {
    const said = one.progress, used = one.used_by.length;
    say(name, one.node_name);
    const words = [one.pinned && "pinned", used && `used by ${count(used, "replica")}`, one.leaves && "goes once unused"];
    say(where, words.filter(Boolean).join(", "));
    pill(state, toneOf(one.state), word(one.state));
    sayOrHide(about, one.about && sentence(one.about));
    about.className = `reason ${toneOf(one.state)}`;
    meter.hidden = !said?.total;
    bar.style.inlineSize = said?.total ? `${Math.min(100, (100 * said.fetched) / said.total)}%` : "0";
  };
  return node;
}
