// The list of shows.

import { Api } from './api.js';
import { nextMoment, when } from './text.js';
import { byId, el, line, show } from './views/dom.js';
import { paintPhase } from './views/show-head.js';

/** How often the list is read again while it is looked at. */
const REFRESH_MS = 15_000;

const api = new Api();

function card(sale) {
  const phase = el('span', { class: 'chip' });
  const availability = el('span', { class: 'chip soft' });
  paintPhase(phase, availability, sale);
  const next = nextMoment(sale);
  return el('li', { class: 'card', 'data-show': sale.id },
    el('h2', {}, sale.title),
    el('p', { class: 'quiet' }, [sale.venue, sale.startsAt && when(sale.startsAt)].filter(Boolean).join(' · ')),
    el('p', { class: 'chips' }, phase, ' ', availability),
    next ? el('p', {}, `${next.label} ${when(next.at)}`) : null,
    sale.message ? el('p', { class: 'note' }, sale.message) : null,
    el('a', { class: 'button', href: `show.html?show=${encodeURIComponent(sale.id)}` }, 'Open', el('span', { class: 'spoken' }, ` ${sale.title}`)));
}

let last = '';

async function refresh() {
  try {
    const { shows = [] } = (await api.get('/api/shows')) ?? {};
    const now = JSON.stringify(shows);
    if (now !== last) byId('shows').replaceChildren(...shows.map(card));
    last = now;
    show(byId('empty'), shows.length === 0);
    byId('shows').setAttribute('aria-busy', 'false');
    line(byId('problem'), '');
  } catch (err) {
    line(byId('problem'), `${err.message}. Trying again shortly.`);
  }
}

async function loop() {
  if (document.visibilityState === 'visible') await refresh();
  setTimeout(loop, REFRESH_MS);
}

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') refresh();
});
loop();
