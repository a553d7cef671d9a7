// Small helpers for views.

export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/** Sets text only when it differs, so that a live region does not speak again. */
export function text(element, value) {
  const next = value ?? '';
  if (element.textContent !== next) element.textContent = next;
}

export function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

/** Text that is shown when there is some. */
export function line(element, value) {
  text(element, value);
  show(element, Boolean(value));
}

/** An element with attributes and children; texts are never read as markup. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((c) => c !== null && c !== undefined));
  return element;
}

/** Replaces the options of a select without losing what is chosen, as long as it exists. */
export function options(select, list) {
  const wanted = JSON.stringify(list);
  if (select.dataset.options === wanted) return;
  select.dataset.options = wanted;
  const chosen = select.value;
  select.replaceChildren(...list.map(([value, label]) => el('option', { value }, label)));
  if (list.some(([value]) => value === chosen)) select.value = chosen;
}

/** A button that asks once more before it acts. */
export function confirmButton(label, question, act, attributes = {}) {
  let armed;
  const button = el('button', { type: 'button', ...attributes, onclick: () => {
    if (armed) {
      clearTimeout(armed);
      armed = undefined;
      button.textContent = label;
      act();
      return;
    }
    button.textContent = question;
    armed = setTimeout(() => { armed = undefined; button.textContent = label; }, 4000);
  } }, label);
  return button;
}
