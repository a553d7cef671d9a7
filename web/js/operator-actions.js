// What an operator does to one show beside changing its settings: let people in, remove
// or explain one, begin anew, preview limits, and look at what was done.

import { at } from './api.js';
import { instant, limitChange } from './operator-form.js';
import { count, plural, when } from './text.js';
import { byId, confirmButton, el, line, show } from './views/dom.js';

/** How a duration of so many seconds reads: "40 s", "12 min". */
export function span(seconds) {
  return seconds < 120 ? `${count(seconds)} s` : `${count(Math.round(seconds / 60))} min`;
}

/** What a preview says, in a sentence. */
export function previewed({ waiting, medianSecondsBefore, medianSecondsAfter }) {
  if (waiting === 0) return 'Nobody is waiting.';
  return `The median wait goes from ${span(medianSecondsBefore)} to ${span(medianSecondsAfter)} for ${plural(waiting, 'person', 'people')} waiting.`;
}

const STOPPED = { maxActive: 'as many are inside as may be', ratePerMinute: 'as many came in within a minute as may', waiting: 'nobody is left in the line' };

/** What came of letting people in, in a sentence. */
export function letIn({ asked, admitted, limitedBy }) {
  const stopped = STOPPED[limitedBy];
  return `${plural(admitted, 'person', 'people')} of ${count(asked)} let in${stopped ? `: ${stopped}` : ''}.`;
}

/** Ends a place, named by its request id or by its person: a name may have the form of an id. */
export async function removePlace(api, path, name) {
  if (/^[A-Za-z0-9_-]{14}$/.test(name)) {
    try {
      return await api.post(path, { requestId: name });
    } catch (err) {
      if (err.status !== 404) throw err;
    }
  }
  return api.post(path, { person: name });
}

/**
 * @param act runs what a button does and says how it went
 * @param chosen returns {id, queue} of the show that is managed
 */
export function wireActions({ api, act, chosen, say }) {
  const path = (action) => at`/api/operator/shows/${chosen().id}/` + action;
  byId('limits-preview').addEventListener('click', () => act(async () => {
    const body = limitChange(Object.fromEntries(new FormData(byId('limits-form'))), chosen().queue);
    line(byId('preview'), body ? previewed(await api.post(path('preview'), body)) : 'Nothing would change.');
  }, ''));
  byId('admit-form').addEventListener('submit', (event) => {
    event.preventDefault();
    act(async () => say(letIn(await api.post(path('admit'), { count: Number(byId('admit-count').value) }))), '');
  });
  byId('codes-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const order = codeOrder(Object.fromEntries(new FormData(event.target)));
    act(async () => renderMinted((await api.post(path('codes'), order)).codes), '');
  });
  byId('place-form').addEventListener('submit', (event) => {
    event.preventDefault();
    show(byId('explanation'), false); // of somebody else, should there be nothing to tell of this one
    act(async () => renderExplanation(await api.get(path('places/') + at`${byId('place-name').value.trim()}` + '/explain')), '');
  });
  byId('place-name').addEventListener('input', () => show(byId('explanation'), false));
  byId('remove-place').append(confirmButton('Remove', 'End this place?', () =>
    act(() => removePlace(api, path('remove'), byId('place-name').value.trim()), 'Removed.'), { id: 'remove', class: 'danger' }));
  byId('reset-place').append(confirmButton('Begin anew', 'End everybody’s place? Seats sold stay sold.', () =>
    act(() => api.post(path('reset')), 'All places have ended; a new epoch has begun.'), { id: 'reset', class: 'danger' }));
  byId('audit').addEventListener('toggle', () => {
    if (byId('audit').open) act(async () => renderActions((await api.get(path('audit'))).actions), '');
  });
}

/** The lanes that codes can be made for. */
export function renderCodes(sale) {
  const names = (sale.queue.lanes ?? []).map((lane) => lane.name);
  show(byId('codes-form'), names.length > 0);
  const select = byId('code-lane');
  if ([...select.options].map((option) => option.value).join() !== names.join()) {
    select.replaceChildren(...names.map((name) => el('option', { value: name }, name)));
  }
}

/** The body that has codes made; an empty field is left out. */
export function codeOrder(fields) {
  const order = { lane: fields.lane, count: Number(fields.count) };
  if (fields.uses) order.uses = Number(fields.uses);
  if (fields.until) order.until = instant(fields.until);
  return order;
}

function renderMinted(codes) {
  byId('codes').value = codes.join('\n');
  for (const id of ['codes', 'codes-told']) show(byId(id), codes.length > 0);
}

/** Takes away what was told about another show. */
export function clearActions() {
  renderMinted([]);
  line(byId('preview'), '');
  show(byId('explanation'), false);
  byId('audit').open = false;
}

function renderExplanation({ place, history, rules }) {
  show(byId('explanation'), true);
  const rank = place.rank ? `, number ${count(place.rank)} of ${count(place.waiting)}` : '';
  byId('explanation').replaceChildren(el('p', {}, el('strong', {}, place.status + rank)),
    el('ul', {}, ...rules.map((rule) => el('li', { 'data-rule': rule.code }, `Now: ${rule.text}.`))),
    el('ul', {}, ...history.map((event) => el('li', {}, `${when(event.at)}: ${event.what}`))));
}

function renderActions(actions) {
  const shown = (value) => (value && Object.keys(value).length > 0 ? JSON.stringify(value) : '');
  byId('actions').replaceChildren(...actions.map((a) => el('tr', {}, el('td', {}, when(a.at)), el('td', {}, a.operator), el('td', {}, a.action),
    el('td', {}, shown(a.detail)), el('td', {}, a.doneAt ? shown(a.outcome) : 'not done'))));
}
