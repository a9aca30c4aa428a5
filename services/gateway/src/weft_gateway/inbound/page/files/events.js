// The last events, newest first, each with all that the log holds about it.

import { make } from "./elements.js";
import { REMEMBERED } from "./link.js";
import { clock, replicaName, toneOf, word } from "./words.js";

const LONG = 40;

/** A list of commits under `list`; names come from commits and from what the mesh shows. */
export class Events {
  #list;
  /** @type {Map<string, string>} */
  #names = new Map(); // id of a node or a model -> name

  /** @param {any} list */
  constructor(list) {
    this.#list = list;
  }

  /** Learn names from an answer of /api/status. @param {API.StatusPage} status */
  learn({ nodes, models }) {
    for (const { id, name } of [...nodes, ...models]) this.#names.set(id, name);
  }

  /** @param {API.Commit} commit */
  add(commit) {
    for (const [id, name] of Object.entries(commit.names ?? {})) this.#names.set(id, name);
    for (const fact of commit.facts) if (fact.name && commit.kind !== "request") this.#names.set(commit.key, fact.name);
    this.#list.prepend(this.#row(commit));
    while (this.#list.children.length > REMEMBERED) this.#list.lastElementChild.remove();
  }

  clear() {
    this.#list.replaceChildren();
  }

  /** @param {API.Commit} commit */
  #row(commit) {
    const what = commit.facts.map((fact) => word(fact.type)).join(", ");
    const why = this.#unsaid(reasonOf(commit.facts));
    const time = make("time", { text: clock(commit.at), attrs: { datetime: new Date(commit.at * 1000).toISOString() } });
    const tone = toneOf(commit.facts.at(-1)?.type ?? "");
    const text = make("span", {
      cls: "what",
      children: [
        make("span", { cls: "kind", text: commit.kind }), " ",
        make("strong", { text: what }), " ",
        make("span", { cls: "who", text: this.#subject(commit) }),
      ],
    });
    if (why) text.append(make("span", { cls: "why", text: why }));
    const details = make("details", { children: [make("summary", { children: [time, make("span", { cls: `dot ${tone}` }), text] })] });
    // Made when it is opened: most never are.
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) {
        details.append(make("pre", { text: JSON.stringify(commit, null, 2), attrs: { tabindex: "0" } }));
      }
    });
    return make("li", { children: [details] });
  }

  /** A long reason is told by the first event that gives it: what follows from that gives it again. @param {string} why */
  #unsaid(why) {
    if (why.length < LONG) return why;
    const shown = [...this.#list.querySelectorAll(".why")].map((each) => each.textContent);
    return shown.some((said) => why.endsWith(said) || said.endsWith(why)) ? "" : why;
  }

  /** @param {API.Commit} commit */
  #subject({ kind, key, facts }) {
    const fact = facts[0];
    const named = (/** @type {string} */ id) => this.#names.get(id) ?? id;
    switch (kind) {
      case "node":
        return fact.replica ? `${named(key)}: ${this.#replica(fact.replica)}` : named(key);
      case "replica":
        return this.#replica(key);
      case "run": {
        const [node, replica] = key.split(".");
        return `${this.#replica(replica)} on ${named(node)}`;
      }
      case "inspection":
        return `${fact.source} on ${named(key.split(".")[0])}`;
      case "machine":
        return fact.source ? `${named(key)}: ${fact.source}` : named(key);
      case "request":
        return fact.name ?? named(fact.model ?? fact.node ?? fact.result?.model ?? fact.result?.node ?? key);
      case "artifact":
        return `${fact.file?.name ?? key} of ${named(fact.model ?? "")}`;
      case "name":
        return fact.name ?? key;
      case "mesh":
        return "";
      default:
        return named(key);
    }
  }

  /** @param {string} id */
  #replica(id) {
    return replicaName(id, this.#names.get(id.slice(0, id.lastIndexOf("-"))));
  }
}

/** The first reason that a commit's facts give, in words. @param {API.Fact[]} facts */
function reasonOf(facts) {
  for (const { reason, why, detail, silent_for, silent, healthy_before } of facts) {
    if (silent_for !== undefined) return `silent for ${silent_for.toFixed(1)} s`;
    if (silent !== undefined) return `${silent} of ${healthy_before} nodes fell silent at once`;
    const said = reason || detail || why;
    if (said) return said;
  }
  return "";
}
