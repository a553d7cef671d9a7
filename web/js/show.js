// The page of one show: puts session, room, chat and views together.

import { Api } from './api.js';
import { ChatRooms } from './chatrooms.js';
import { FoyerClient } from './foyer-client.js';
import { Room } from './room.js';
import { Session } from './session.js';
import { ServerClock } from './time.js';
import { BasketView } from './views/basket.js';
import { BookingsView } from './views/bookings.js';
import { ChatView } from './views/chat.js';
import { Countdowns } from './views/countdowns.js';
import { byId, line, text } from './views/dom.js';
import { PlaceView } from './views/place.js';
import { SeatsView } from './views/seats.js';
import { renderLink, renderShowHead } from './views/show-head.js';
import { renderSignIn, wireSignIn } from './views/sign-in.js';

const params = new URLSearchParams(location.search);
const showId = params.get('show') ?? '';
const clock = new ServerClock();
const session = new Session();
const api = new Api({ session, clock });
const say = (words) => text(byId('announce'), words);
const countdowns = new Countdowns(clock, say);

const client = new FoyerClient({ api, refresh: () => session.refresh() });
const room = new Room({ api, session, showId, client, onChange: schedule });
const chatView = new ChatView(() => session.person()?.id);
const chat = new ChatRooms({
  api, live: client, showId, person: () => session.person(), visible: () => chatView.looking(), onChange: () => schedule([]),
});
chatView.attach(chat);
client.addEventListener('frame', (event) => chat.frame(event.detail));

const placeView = new PlaceView(room, countdowns, say);
const seatsView = new SeatsView(room);
const basketView = new BasketView(room, countdowns);
const bookingsView = new BookingsView(room);

// Rendering: what changed within one frame of the screen is painted once.

let scheduled = false;
let changedSeats = new Set();
let lastLink = '';

/** @param seats ids of seats that may look different */
function schedule(seats = []) {
  for (const id of seats) changedSeats.add(id);
  if (scheduled) return;
  scheduled = true;
  // A hidden tab gets no frames, and its title must still call.
  if (document.visibilityState === 'hidden') setTimeout(render, 50);
  else requestAnimationFrame(render);
}

function render() {
  scheduled = false;
  const person = session.person();
  const signedIn = person !== null;
  renderSignIn(person);
  renderShowHead(room.state);
  renderLink(room.state);
  line(byId('notice-text'), room.state.notice);
  byId('notice').hidden = room.state.notice === '';
  placeView.render(signedIn);
  const changed = [...changedSeats];
  changedSeats = new Set();
  seatsView.render(changed);
  basketView.render();
  bookingsView.render(signedIn);
  chatView.render(signedIn);
  if (room.state.link !== lastLink) {
    lastLink = room.state.link;
    chat.linkChanged(lastLink);
  }
}

// Coming and going

async function enter() {
  try {
    await room.enter();
    await chat.refresh();
    if (params.has('room')) {
      chatView.openPanel();
      await chat.join(params.get('room'));
    }
  } catch (err) {
    if (err.status === 401) {
      signOut();
      line(byId('problem'), 'That sign-in is not valid any more. Please sign in again.');
    } else {
      line(byId('problem'), err.message);
    }
  }
  schedule();
}

function signOut() {
  chat.close();
  session.signOut();
  room.signedOut();
  schedule();
}

async function begin() {
  if (!showId) {
    location.replace('index.html');
    return;
  }
  session.adoptFragment();
  try {
    await room.readShow();
  } catch (err) {
    text(byId('title'), err.status === 404 ? 'No such show' : 'The show cannot be read');
    line(byId('problem'), err.status === 404 ? `There is no show called “${showId}”.` : `${err.message}. Reload the page to try again.`);
    return;
  }
  if (session.token()) await enter();
  schedule();
}

wireSignIn(session, enter);
byId('sign-out').addEventListener('click', signOut);
byId('notice-close').addEventListener('click', () => room.notice(''));
window.addEventListener('online', () => room.wake());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') room.wake();
  else room.hide();
});
window.addEventListener('pagehide', () => client.close());
// The first sign of life takes a turn. What scripts dispatch is none.
for (const sign of ['pointerdown', 'pointermove', 'wheel', 'keydown', 'focus']) {
  window.addEventListener(sign, (event) => {
    if (event.isTrusted && !event.target.closest?.('#leave')) room.sign();
  }, { passive: true });
}
window.addEventListener('pageshow', (event) => {
  if (event.persisted && session.token()) enter();
});
begin();
