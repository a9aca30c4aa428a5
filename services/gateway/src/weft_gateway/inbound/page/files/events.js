// The last events, newest first, each with all that the log holds about it.

import { make } from "./elements.js";
import { REMEMBERED } from "./link.js";
import { clock, replicaName, toneOf, word } from "./words.js";

/** A list of commits under `list`; names come from commits and from what the mesh shows. */
export class Events {
  #list;
  #names = new Map(); // id of a node or a model -> name

  constructor(list) {
    this.#list = list;
  }

  /** Learn names from an answer of /api/status. */
  learn({ nodes, models }) {
    for (const { id, name } of [...nodes, ...models]) this.#names.set(id, name);
  }

  add(commit) {
    for (const [id, name] of Object.entries(commit.names ?? {})) this.#names.set(id, name);
    for (const fact of commit.facts) if (fact.name && commit.kind !== "request") this.#names.set(commit.key, fact.name);
    this.#list.prepend(this.#row(commit));
    while (this.#list.children.length > REMEMBERED) this.#list.lastElementChild.remove();
  }

  clear() {
    this.#list.replaceChildren();
  }

  #row(commit) {
    const what = commit.facts.map((fact) => word(fact.type)).join(", ");
    const why = reasonOf(commit.facts);
    const time = make("time", { text: clock(commit.at), attrs: { datetime: new Date(commit.at * 1000).toISOString() } });
    const tone = toneOf(commit.facts.at(-1).type);
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

  #subject({ kind, key, facts }) {
    const fact = facts[0];
    const named = (id) => this.#names.get(id) ?? id;
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
        return `${fact.file?.name ?? key} of ${named(fact.model)}`;
      case "name":
        return fact.name ?? key;
      case "mesh":
        return "";
      default:
        return named(key);
    }
  }

  #replica(id) {
    return replicaName(id, this.#names.get(id.slice(0, id.lastIndexOf("-"))));
  }
}

/** The first reason that a commit's facts give, in words. */
function reasonOf(facts) {
  for (const { reason, why, detail, silent_for, silent, healthy_before } of facts) {
    if (silent_for !== undefined) return `silent for ${silent_for.toFixed(1)} s`;
    if (silent !== undefined) return `${silent} of ${healthy_before} nodes fell silent at once`;
    if (reason || detail || why) return reason || detail || why;
  }
  return "";
}
