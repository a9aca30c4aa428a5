// What would have to change for a replica that waits to have a place. Loaded, and searched for, when somebody asks: few
// do, and the gateway has one search at a time.

import { copies, make, sayOrHide } from "./elements.js";
import { ask } from "./key.js";
import { problemOf } from "./link.js";
import { count, sentence } from "./words.js";

const LOOK_LIMIT_S = 20;

/** Ask for a replica's, and show them, unless it was asked again meanwhile. Throws where nothing answers. @param {string} id @param {any} about @param {any} list @param {() => boolean} current */
export async function showRemedies(id, about, list, current) {
  /** @type {Partial<API.ReplicaExplanation>} */
  let found = {}, failed = "";
  try {
    const response = await ask(`/api/explanations/${encodeURIComponent(id)}`, { cache: "no-store", signal: AbortSignal.timeout(LOOK_LIMIT_S * 1000) });
    if (!response.ok) throw await problemOf(response);
    found = (await response.json()).replica;
  } catch (error) {
    if (!error.status) throw error;
    failed = error.message;
  }
  if (!current()) return;
  list.replaceChildren(...(found.remedies ?? []).map(remedy));
  sayOrHide(about, failed || heading(found));
}

/** @param {Partial<API.ReplicaExplanation>} found */
function heading({ remedies, remedies_note: note }) {
  if (!remedies?.length) return sentence(note ?? (remedies ? "nothing that was tried would give it a place" : "it doesn't wait any more"));
  const any = remedies.length === 1 ? "It would have a place after this:" : "It would have a place after any of these:";
  return note ? `${sentence(note)} ${any}` : any;
}

/** @param {API.Remedy} found */
function remedy({ steps, alike }) {
  const also = alike ? ` (${count(alike, "other node")} likewise)` : "";
  const lines = steps.map(({ command }) => command).filter(Boolean).map(lineToCopy);
  return make("li", { children: [make("p", { text: `${steps.map(({ what }) => what).join(", and ")}${also}` }), ...lines] });
}

/** @param {string} command */
function lineToCopy(command) {
  const line = make("code", { text: `./${command}` });
  const button = make("button", { cls: "quiet", text: "Copy", attrs: { type: "button", "aria-label": `Copy ${command}` } });
  copies(button, line);
  return make("p", { cls: "line", children: [line, button] });
}
