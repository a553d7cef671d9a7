// The operator's page.

import { Api, at } from './api.js';
import { clearActions, renderCodes, wireActions } from './operator-actions.js';
import { QUEUE, explain, limitChange, newShow, writeLanes } from './operator-form.js';
import { Session } from './session.js';
import { count, when } from './text.js';
import { byId, confirmButton, el, line, show, text } from './views/dom.js';
import { paintPhase } from './views/show-head.js';
import { renderSignIn, wireSignIn } from './views/sign-in.js';

const NUMBERS_MS = 2000;
const LISTS_MS = 10_000;

const session = new Session({ key: 'foyer.operator', roles: ['operator'] });
const api = new Api({ session });

let shows = [];
let chosen = new URLSearchParams(location.search).get('show');
let shownDead = '';

/** Runs what a button does, and says how it went. */
async function act(work, doneText) {
  line(byId('problem'), '');
  line(byId('done'), '');
  try {
    await work();
    if (doneText) line(byId('done'), doneText);
    await readLists();
  } catch (err) {
    fail(err);
  }
}

function fail(err) {
  if (err.status === 401 || err.status === 403) {
    session.signOut();
    render();
    line(byId('problem'), err.status === 403 ? 'This page needs the role operator.' : 'Please sign in again.');
    return;
  }
  line(byId('problem'), explain(err));
}

// Reading

async function readLists() {
  const [list, dead] = await Promise.all([api.get('/api/shows'), api.get('/api/operator/dead-letters')]);
  shows = list?.shows ?? [];
  renderShows();
  renderDead(dead?.deadLetters ?? []);
  renderChosen();
}

async function readNumbers() {
  if (!chosen) return;
  const id = chosen;
  const numbers = await api.get(at`/api/operator/shows/${id}`);
  if (id === chosen) renderNumbers(numbers);
}

/** Repeats while the page is looked at; a failure is shown and the next look tries again. */
function every(ms, work) {
  const look = async () => {
    if (session.token() && document.visibilityState === 'visible') {
      try {
        await work();
      } catch (err) {
        fail(err);
      }
    }
    setTimeout(look, ms);
  };
  setTimeout(look, ms);
}

// Rendering

function render() {
  renderSignIn(session.person());
  show(byId('desk'), session.token() !== null);
}

function renderShows() {
  show(byId('empty'), shows.length === 0);
  byId('shows').replaceChildren(...shows.map((s) => {
    const phase = el('span', { class: 'chip' });
    paintPhase(phase, el('span'), s);
    return el('tr', { 'data-show': s.id },
      el('td', {}, s.title, el('br'), el('span', { class: 'quiet' }, s.id)), el('td', {}, phase),
      el('td', {}, s.capacity > 0 ? `${count(s.sold)} of ${count(s.capacity)}` : '–'), el('td', {}, when(s.opensAt)),
      el('td', {}, el('button', { type: 'button', 'aria-pressed': String(s.id === chosen), onclick: () => choose(s.id) }, 'Manage')));
  }));
}

function renderChosen() {
  const sale = shows.find((s) => s.id === chosen);
  show(byId('show'), Boolean(sale));
  if (!sale) return;
  text(byId('show-title'), sale.title);
  byId('show-link').href = `show.html?show=${encodeURIComponent(sale.id)}`;
  paintPhase(byId('phase'), byId('availability'), sale);
  const closed = sale.phase === 'CLOSED';
  show(byId('pause'), !closed && sale.phase !== 'PAUSED' && !sale.paused);
  show(byId('resume'), !closed && (sale.phase === 'PAUSED' || Boolean(sale.paused)));
  show(byId('close-place'), !closed);
  show(byId('reopen'), closed);
  const message = byId('message');
  if (document.activeElement !== message) message.value = sale.message ?? '';
  for (const name of QUEUE) {
    const field = byId('limits-form').elements[name];
    if (!byId('limits-form').contains(document.activeElement)) field.value = sale.queue[name] ?? 1;
  }
  if (!byId('limits-form').contains(document.activeElement)) byId('limits-form').elements.lanes.value = writeLanes(sale.queue.lanes);
  renderCodes(sale);
}

const FIGURES = [
  ['waiting', 'Waiting'], ['active', 'Inside'], ['maxActive', 'Inside at most'], ['admittedLastMinute', 'Let in, last minute'],
  ['held', 'Seats in baskets'], ['sold', 'Seats sold'], ['capacity', 'Seats'], ['joined', 'Joined in all'], ['ended', 'Gone'],
  ['noShowPercent', 'Turns not claimed, percent'], ['seatsPerBuyer', 'Seats a buyer, lately'],
];

function renderNumbers(answer) {
  const numbers = { ...answer, ...answer?.stats };
  byId('numbers').replaceChildren(...FIGURES.filter(([name]) => Number.isFinite(numbers[name])).map(([name, label]) =>
    el('div', {}, el('dt', {}, label), el('dd', { 'data-number': name }, count(numbers[name])))),
  ...laneFigures(answer).map(([label, waiting]) => el('div', {}, el('dt', {}, label), el('dd', { 'data-lane': label }, count(waiting)))));
}

/** How many wait in each line of a show with lanes. */
function laneFigures(answer) {
  const names = ['without a code', ...(answer?.show?.queue?.lanes ?? []).map((lane) => lane.name)];
  return (answer?.lanes ?? []).map(({ waiting }, i) => [`Waiting: ${names[i] ?? `lane ${i}`}`, waiting]);
}

function renderDead(letters) {
  const wanted = JSON.stringify(letters);
  if (wanted === shownDead) return;
  shownDead = wanted;
  show(byId('dead-table'), letters.length > 0);
  show(byId('no-dead'), letters.length === 0);
  byId('dead-letters').replaceChildren(...letters.map((d) => {
    const entry = { stream: d.stream, id: d.id };
    return el('tr', { 'data-dead': d.id },
      el('td', {}, d.type, el('br'), el('span', { class: 'quiet' }, `${d.stream} ${d.commandId}`)),
      el('td', {}, d.reason ?? ''), el('td', {}, d.lastError || d.firstError || ''), el('td', {}, when(d.at)),
      el('td', {}, el('div', { class: 'row' },
        el('button', { type: 'button', onclick: () => act(() => api.post('/api/operator/dead-letters', entry), 'Requeued.') }, 'Requeue'),
        confirmButton('Drop', 'Drop for good?', () => act(() => api.call('DELETE', '/api/operator/dead-letters', entry), 'Dropped.'), { class: 'danger' }))));
  }));
}

// Acting

function choose(id) {
  chosen = id;
  byId('numbers').replaceChildren();
  clearActions();
  history.replaceState(null, '', `operator.html?show=${encodeURIComponent(id)}`);
  renderShows();
  renderChosen();
  readNumbers().catch(fail);
  byId('show').scrollIntoView({ block: 'nearest' });
}

function change(body, doneText) {
  return act(() => api.patch(at`/api/shows/${chosen}`, body), doneText);
}

function sectionRow() {
  const index = byId('sections').childElementCount;
  const name = String.fromCharCode(65 + (index % 26));
  const field = (label, attributes) => el('label', {}, label, el('input', { required: true, ...attributes }));
  const row = el('div', { class: 'grid', 'data-section': '' },
    field('Section', { 'data-field': 'name', value: name, maxlength: 32 }),
    field('Rows', { 'data-field': 'rows', type: 'number', min: 1, max: 1000, value: 10 }),
    field('Seats a row', { 'data-field': 'seatsPerRow', type: 'number', min: 1, max: 1000, value: 12 }),
    field('Price', { 'data-field': 'price', type: 'number', min: 0, step: '0.01', value: 25 }),
    el('button', { type: 'button', onclick: () => row.remove() }, 'Remove'));
  byId('sections').append(row);
}

function readSections() {
  return [...byId('sections').children].map((row) =>
    Object.fromEntries([...row.querySelectorAll('[data-field]')].map((f) => [f.dataset.field, f.value])));
}

function openCreate(open) {
  show(byId('create'), open);
  byId('new-show').setAttribute('aria-expanded', String(open));
  if (open) byId('create-form').elements.title.focus();
}

function wire() {
  byId('zone').textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  byId('new-show').addEventListener('click', () => openCreate(byId('create').hidden));
  byId('create-cancel').addEventListener('click', () => openCreate(false));
  byId('add-section').addEventListener('click', sectionRow);
  byId('create-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const body = newShow(Object.fromEntries(new FormData(event.target)), readSections());
    act(async () => {
      const made = await api.post('/api/shows', body);
      event.target.reset();
      openCreate(false);
      chosen = made.id;
    }, 'Created.');
  });
  byId('pause').addEventListener('click', () => change({ paused: true }, 'Paused. Nobody is let in, and everybody waiting is told.'));
  byId('resume').addEventListener('click', () => change({ paused: false }, 'Resumed.'));
  byId('reopen').addEventListener('click', () => change({ closed: false }, 'Reopened, unless its closing time has passed.'));
  byId('close-place').append(confirmButton('Close the sale', 'End the sale for everybody?', () => change({ closed: true }, 'Closed.'), { id: 'close', class: 'danger' }));
  byId('message-form').addEventListener('submit', (event) => {
    event.preventDefault();
    change({ message: byId('message').value }, 'Published.');
  });
  byId('message-clear').addEventListener('click', () => {
    byId('message').value = '';
    change({ message: '' }, 'Taken away.');
  });
  byId('limits-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const sale = shows.find((s) => s.id === chosen);
    const body = limitChange(Object.fromEntries(new FormData(event.target)), sale.queue);
    if (body) change(body, 'Saved.');
    else line(byId('done'), 'Nothing was changed.');
  });
  // What was done before is no word about what is being typed, or was refused by the browser.
  for (const event of ['input', 'invalid']) byId('desk').addEventListener(event, () => line(byId('done'), ''), true);
  wireActions({ api, act, chosen: () => shows.find((s) => s.id === chosen), say: (told) => line(byId('done'), told) });
  byId('sign-out').addEventListener('click', () => {
    session.signOut();
    render();
  });
}

async function enter() {
  render();
  await readLists().then(readNumbers).catch(fail);
}

session.adoptFragment();
wire();
sectionRow();
wireSignIn(session, enter);
every(NUMBERS_MS, readNumbers);
every(LISTS_MS, readLists);
if (session.token()) enter();
else render();
