// Names that stand for several models: which, in which order or shares, and whether each can be asked.

import { keep, make, pill, say, sayOrHide } from "./elements.js";
import { sentence, toneOf, word } from "./words.js";

/** How an alias stands: as the first of its models that answers, else as its first. @param {API.Alias} alias */
export const aliasState = ({ targets }) => (targets.some(({ state }) => state === "ready") ? "ready" : (targets[0]?.state ?? "empty"));

/** @param {any} list @param {API.Alias[]} aliases */
export function showAliases(list, aliases) {
  keep(list, aliases, (alias) => alias.name, aliasCard);
}

function aliasCard() {
  const name = make("h3"), state = make("span"), about = make("p", { cls: "about" }), targets = make("ul", { cls: "replicas" });
  const node = make("li", { children: [make("div", { cls: "title", children: [name, state] }), about, targets] });
  node.show = (/** @type {API.Alias} */ alias) => {
    const standing = aliasState(alias), ordered = alias.rule === "order";
    say(name, alias.name);
    pill(state, toneOf(standing), word(standing));
    say(about, `Alias: ${ordered ? "the first of these that is free answers" : "each of these has its share"}.`);
    const whole = alias.targets.reduce((sum, { weight }) => sum + weight, 0);
    const rows = alias.targets.map((target, index) => ({ target, place: ordered ? `${index + 1}.` : share(target.weight, whole) }));
    keep(targets, rows, ({ target }) => target.model, targetRow);
  };
  return node;
}

function targetRow() {
  const place = make("span", { cls: "where" }), name = make("span", { cls: "name" }), ready = make("span", { cls: "where" });
  const state = make("span"), reason = make("p", { cls: "reason" });
  const node = make("li", { children: [place, name, ready, state, reason] });
  node.show = (/** @type {{target: API.AliasTarget, place: string}} */ { target, place: said }) => {
    say(place, said);
    say(name, target.model);
    say(ready, `${target.ready} of ${target.wanted} ready`);
    pill(state, toneOf(target.state), word(target.state));
    sayOrHide(reason, target.state === "ready" ? "" : target.reason && sentence(target.reason));
    reason.className = `reason ${toneOf(target.state)}`;
  };
  return node;
}

/** A weight as a part of all. @param {number} weight @param {number} whole */
const share = (weight, whole) => `weight ${weight}, ${Math.round((100 * weight) / whole)} %`;
