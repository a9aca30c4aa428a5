// Makes and keeps elements. Data enters the page as text only: nothing here, or anywhere, reads markup from a string.

/**
 * An element with its class, text or children, and attributes. Event handlers are set by the caller.
 * @param {string} tag
 * @param {{cls?: string, text?: string, attrs?: Record<string, string>, children?: any[]}} [options]
 * @returns {any}
 */
export function make(tag, { cls, text, attrs, children } = {}) {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attrs ?? {})) node.setAttribute(name, value);
  if (children) node.append(...children);
  return node;
}

/**
 * Set an element's text where it differs, so that a selection and a screen reader are left in peace.
 * @param {any} node @param {string} text
 */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Show an element with a text, or hide it where there is none.
 * @param {any} node @param {string | null | undefined} text
 */
export function sayOrHide(node, text) {
  node.hidden = !text;
  say(node, text ?? "");
}

/** A state as a colour and a word. @param {any} node @param {string} tone @param {string} word */
export function pill(node, tone, word) {
  const cls = `pill ${tone}`;
  if (node.className !== cls) node.className = cls;
  say(node, word);
}

/**
 * One child of `parent` for each item, in the items' order, kept by key: focus and open details stay.
 * `create(item)` returns an element with a method `show(item)`.
 * @template T
 * @param {any} parent
 * @param {T[]} items
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => any} create
 */
export function keep(parent, items, keyOf, create) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = old.get(key);
    old.delete(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    child.show(item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of old.values()) child.remove();
}

/** Let a button copy an element's text. @param {any} button @param {any} line */
export function copies(button, line) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line.textContent);
      say(button, "Copied");
    } catch {
      getSelection()?.selectAllChildren(line); // no clipboard off https: the line is marked, ready to copy
      say(button, "Selected");
    }
    setTimeout(() => say(button, "Copy"), 2000);
  });
}
