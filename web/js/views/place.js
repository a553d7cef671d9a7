// Where the person stands: status, number in line, turn, session.

import { scoreOf } from '../draw.js';
import { alive, progress } from '../state.js';
import { count, kept, odds, plural, wait, when } from '../text.js';
import { byId, line, show, text } from './dom.js';

/** Heading and explanation of each standing. */
const STANDINGS = {
  PREQUEUE: ['You are in the draw', 'At the opening everybody here gets a number at random. You need to do nothing; keep this page open.'],
  WAITING: ['You are in line', 'Keep this page open.'],
  ADMITTED: ['It is your turn', 'Anything you do on this page takes you in. Without a sign of you the next person gets your turn when the time is over.'],
  ACTIVE: ['You are inside', 'Choose your seats, hold them, and book before your time is over.'],
  EXPIRED: ['Your place has expired', 'Your turn or your time inside ran out, or we heard nothing from you for too long. You can join again at the end of the line.'],
  LEFT: ['You have left', 'You can join again at the end of the line.'],
  SOLD_OUT: ['Sold out', 'Every seat has been sold while you were waiting. If somebody cancels, the sale goes on and your turn may still come.'],
  CLOSED: ['The sale has ended', 'Nobody is let in any more. Bookings made before stay valid.'],
};

/** Heading and explanation for somebody without a place, by the show's phase. */
const OUTSIDE = {
  SCHEDULED: ['Not open yet', 'You can join when the time has come. This page counts down by the server’s clock.'],
  PREQUEUE: ['The pre-queue is open', 'Enter the draw now; it does not matter how early you come before the opening.'],
  OPEN: ['The sale is on', 'Join the queue to get your number.'],
  PAUSED: ['The queue is paused', 'You can join now and are let in when the operator goes on.'],
  SOLD_OUT: ['Sold out', 'Every seat is sold.'],
  CLOSED: ['The sale has ended', 'Nobody is let in any more.'],
};

const JOIN_LABELS = { PREQUEUE: 'Enter the draw', OPEN: 'Join the queue', PAUSED: 'Join the queue' };
const LEAVE_LABELS = { PREQUEUE: 'Leave the draw', ADMITTED: 'Give up my turn', ACTIVE: 'Leave and give up my place' };

/** A rank is spoken to a screen reader at most this often. */
const SAY_RANK_EVERY_MS = 20_000;

export class PlaceView {
  #room; #countdowns; #say; #saidRankAt = -Infinity; #title = ''; #flash = null; #checked = '';

  constructor(room, countdowns, say) {
    this.#room = room;
    this.#countdowns = countdowns;
    this.#say = say;
    byId('join-form').addEventListener('submit', (event) => {
      event.preventDefault();
      room.join(byId('code').value.trim());
    });
    byId('claim').addEventListener('click', () => room.claim());
    byId('leave').addEventListener('click', () => room.leave());
    byId('draw').addEventListener('toggle', () => room.readProof());
  }

  render(signedIn) {
    const { state, busy } = this.#room;
    const phase = state.show?.phase;
    const { place } = state;
    const status = place?.status ?? 'NONE';
    show(byId('place'), Boolean(state.show));
    if (!state.show) return;
    byId('place').dataset.status = status;
    this.#heading(status, phase, state, signedIn);
    show(byId('paused'), phase === 'PAUSED' && (status === 'WAITING' || status === 'PREQUEUE'));
    this.#opening(state, status);
    this.#line(state, status);
    this.#deadlines(place, status);
    const joinable = signedIn && !alive(place) && phase in JOIN_LABELS;
    show(byId('join'), joinable);
    show(byId('code-field'), joinable && (state.show.queue?.lanes?.length ?? 0) > 0);
    text(byId('join'), place ? 'Join again' : JOIN_LABELS[phase]);
    show(byId('claim'), status === 'ADMITTED');
    show(byId('leave'), alive(place));
    text(byId('leave'), LEAVE_LABELS[status] ?? 'Leave the queue');
    for (const id of ['join', 'claim', 'leave']) byId(id).disabled = busy !== '';
    this.#draw(state);
    text(byId('numbers'), numbers(state));
    this.#pageTitle(state, status);
  }

  #heading(status, phase, { booking, show: sale }, signedIn) {
    let [heading, body] = STANDINGS[status] ?? OUTSIDE[phase] ?? ['', ''];
    const newest = booking ?? this.#room.bookings[0]; // after a reload only the list knows
    if (status === 'LEFT' && newest?.status === 'CONFIRMED') {
      [heading, body] = ['You are done', 'Your seats are booked, and your place went to the next person.'];
    } else if (status === 'ACTIVE' && sale.seating.sections.length === 0) {
      body = 'This show has no seats to choose here. Go on in the shop with your pass.';
    } else if (status === 'WAITING' || status === 'PREQUEUE') {
      body = `${body} ${kept(sale.queue.graceSeconds)}`;
    } else if (status === 'NONE' && phase in JOIN_LABELS && !signedIn) {
      body = `Sign in first. ${body}`;
    }
    const element = byId('status');
    text(element, heading);
    element.dataset.status = status;
    text(byId('status-text'), body);
  }

  #opening({ show: sale }, status) {
    const joins = sale.phase === 'SCHEDULED' ? sale.prequeueAt ?? sale.opensAt : null;
    const closes = sale.draw?.closesAt ?? sale.opensAt;
    const opens = sale.phase === 'PREQUEUE' && (status === 'NONE' || status === 'PREQUEUE') ? closes : null;
    const at = joins ?? opens;
    show(byId('opens'), Boolean(at));
    if (at) {
      text(byId('opens-label'), joins && sale.prequeueAt ? 'The pre-queue opens in' : closes !== sale.opensAt && opens ? 'The draw closes in' : 'The sale opens in');
      text(byId('opens-at'), when(at));
    }
    this.#countdowns.set(byId('opens-countdown'), at, { over: () => this.#room.deadline('opens') });
  }

  #line(state, status) {
    const { shownRank, place } = state;
    show(byId('line'), status === 'WAITING');
    if (status !== 'WAITING') return;
    text(byId('rank'), shownRank === null ? '…' : count(shownRank));
    text(byId('ahead'), shownRank === null ? '…' : count(shownRank - 1));
    text(byId('eta'), state.show.phase === 'PAUSED' ? 'Paused' : wait(state.eta));
    line(byId('lane'), place.lane ? `You are in the lane “${place.lane}”. It has turns of its own, and your number is one of it.` : '');
    line(byId('rank-note'), state.rankNote);
    line(byId('eta-note'), state.etaNote);
    line(byId('odds'), odds(place.odds));
    show(byId('sold-out-likely'), place.odds?.soldOutLikely === true);
    byId('progress').value = Math.round((progress(state) ?? 0) * 1000);
    const now = performance.now();
    if (shownRank !== null && now - this.#saidRankAt > SAY_RANK_EVERY_MS) {
      this.#saidRankAt = now;
      this.#say(`Number ${count(shownRank)} in line of ${plural(place.waiting ?? shownRank, 'person', 'people')}. ${wait(state.eta)}.`);
    }
  }

  #deadlines(place, status) {
    const turn = status === 'ADMITTED' ? place.claimBy : null;
    const session = status === 'ACTIVE' ? place.expiresAt : null;
    show(byId('turn'), Boolean(turn));
    show(byId('session'), Boolean(session));
    this.#countdowns.set(byId('claim-countdown'), turn, { name: 'To enter', over: () => this.#room.deadline('turn') });
    this.#countdowns.set(byId('session-countdown'), session, { name: 'Your time inside', over: () => this.#room.deadline('turn') });
  }

  #draw({ show: sale, place }) {
    show(byId('draw'), Boolean(sale.prequeueAt && sale.draw?.seedHash));
    text(byId('seed-hash'), sale.draw?.seedHash);
    text(byId('seed'), sale.draw?.seed);
    show(byId('seed-row'), Boolean(sale.draw?.seed));
    text(byId('request-id'), place?.requestId);
    show(byId('request-row'), Boolean(place?.requestId));
    const closes = sale.draw?.closesAt ?? sale.opensAt;
    text(byId('draw-closes'), closes === sale.opensAt ? 'the opening' : when(closes));
    show(byId('draw-all'), Boolean(sale.draw?.seed));
    byId('draw-link').href = `/api/shows/${encodeURIComponent(sale.id)}/draw`;
    this.#proof(sale.draw?.seed, place);
  }

  /** The person's own place in the draw, and whether it follows from the seed. */
  #proof(seed, place) {
    const drawn = seed && place?.draw;
    show(byId('proof-row'), Boolean(drawn));
    if (!drawn) return line(byId('proof-check'), '');
    text(byId('proof'), `${count(drawn.place)} (score ${count(drawn.score)})`);
    const checked = `${seed} ${place.requestId} ${drawn.score}`;
    if (checked === this.#checked) return;
    this.#checked = checked;
    scoreOf(seed, place.requestId).then((score) => {
      if (score === null || checked !== this.#checked) return;
      line(byId('proof-check'), score === drawn.score ? 'Checked in this page: your score follows from the seed.' : 'Your score does not follow from the seed. Please tell the organiser.');
    });
  }

  /** A tab in the background calls through its title when the turn has come. */
  #pageTitle({ show: sale, shownRank }, status) {
    const base = `${sale.title} – Foyer`;
    this.#title = status === 'WAITING' && shownRank ? `(${count(shownRank)}) ${base}` : base;
    const calling = status === 'ADMITTED';
    if (!calling) {
      clearInterval(this.#flash);
      this.#flash = null;
      document.title = this.#title;
    } else if (this.#flash === null) {
      const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
      let on = true;
      document.title = 'It is your turn!';
      this.#flash = setInterval(() => {
        on = still || !on || document.visibilityState === 'visible';
        document.title = on ? 'It is your turn!' : this.#title;
      }, 1000);
    }
  }
}

/** The live numbers of the show in a sentence, as far as the server told them. */
function numbers({ stats, place }) {
  const waiting = stats?.waiting ?? place?.waiting;
  const active = stats?.active ?? place?.active;
  if (!Number.isFinite(waiting)) return '';
  const inside = Number.isFinite(active) ? `, ${count(active)} inside` : '';
  return `${plural(waiting, 'person', 'people')} waiting${inside}.`;
}
