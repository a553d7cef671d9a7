// One visitor at one show: what the buttons do, and what follows from the
// server's news. It knows nothing of the page; views read `state`, `seats`,
// `picked`, `bookings` and `busy`, and are told by onChange.

import { at } from './api.js';
import { book, decided, lookAgainAfter } from './booking.js';
import { SeatMap } from './seatmap.js';
import { alive, heldSeats, initial, reduce } from './state.js';
import { HOLD_MARGIN_MS } from './time.js';
import { plural, seatList, when } from './text.js';

/** A missing seat version may still arrive within this time, before the seats are read again. */
const SEAT_PATIENCE_MS = 400;
/** Over how long a crowd spreads that has to join again. */
const REJOIN_SPREAD_MS = 2000;
/** How often the show is read again although nothing was heard: live, and without a socket. */
const RECHECK_MS = { live: 120_000, other: 30_000 };
/** After a sign of life that came to nothing, the next one counts from then on. */
const SIGN_EVERY_MS = 3000;

export class Room {
  state = initial;
  seats = new SeatMap();
  picked = new Set(); // the seats that the person wants
  bookings = [];
  busy = ''; // the action under way
  #api; #session; #client; #showId; #onChange; #timers = new Map(); #follows = new Set(); #reading = false; #hidden; #code = ''; #signAt = -Infinity;

  /** @param client a FoyerClient, which is the person's and may have other listeners */
  constructor({ api, session, showId, client, onChange, hidden = isHidden }) {
    this.#api = api;
    this.#session = session;
    this.#showId = showId;
    this.#client = client;
    this.#onChange = onChange;
    this.#hidden = hidden;
    const on = (name, tell) => client.addEventListener(name, (event) => tell(event.detail));
    on('frame', (frame) => this.#frame(frame));
    on('poll', () => this.#polled());
    on('link', (link) => this.#do({ type: 'link', link }));
    on('stop', () => this.#do({ type: 'notice', notice: 'The live connection was ended by the server. Reload the page to go on.' }));
  }

  // Coming and going

  async readShow() {
    this.#do({ type: 'show', show: await this.#api.get(at`/api/shows/${this.#showId}`) });
    this.#later('show', RECHECK_MS[this.state.link] ?? RECHECK_MS.other, () => this.#quietly(() => this.readShow()));
  }

  /** Takes up where the person stands: their place, bookings and holds. */
  async enter() {
    for (const kind of ['stats/show', 'soldout/show', 'show']) this.#client.follow(`/topic/${kind}/${this.#showId}`);
    await this.readPlace();
    await this.readBookings();
    const pending = this.bookings.find((b) => !decided(b));
    if (pending) this.#took(pending);
    this.#client.connect();
  }

  /** Ends timers and the socket; `enter` may be called again. */
  close() {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#client.close();
  }

  signedOut() {
    this.close();
    this.#client.forget();
    this.picked.clear();
    this.bookings = [];
    this.#do({ type: 'signed-out' });
  }

  /** The tab is shown again or the network is back: nothing known may be trusted until read again. */
  wake() {
    if (!this.#session.token()) return;
    this.#client.check();
    this.#quietly(() => this.readPlace());
    this.#quietly(() => this.readShow());
    if (this.#inside()) this.#quietly(() => this.readSeats());
  }

  /** Nobody looks at the page, or a turn came while nobody did: asks once for its time again. */
  hide() {
    if (this.state.place?.status !== 'ADMITTED' || !this.#hidden()) return;
    this.#quietly(async () => {
      this.#do({ type: 'place', place: await this.#api.post(at`/api/shows/${this.#showId}/admission/extend`, undefined, { safe: true }) });
    });
  }

  /** The person did something on the page: with a turn, that is taking it. */
  sign() {
    if (this.state.place?.status !== 'ADMITTED' || this.#hidden() || this.busy) return;
    const now = performance.now();
    if (now - this.#signAt < SIGN_EVERY_MS) return;
    this.#signAt = now;
    this.claim();
  }

  // Reading

  async readPlace() {
    const place = await this.#client.place(this.#showId);
    if (place) this.#do({ type: 'place', place });
    else await this.#placeGone();
    return place;
  }

  async #placeGone() {
    // A place that vanished may have gone with its epoch, which the show tells.
    if (alive(this.state.place)) await this.readShow();
    if (!this.state.rejoin && !this.#timers.has('rejoin')) this.#do({ type: 'no-place' });
  }

  /** What the draw gave is in answers only: it is asked for when somebody looks. */
  readProof() {
    const { place, show } = this.state;
    if (place && show?.draw?.seed && !place.draw) this.#quietly(() => this.readPlace());
  }

  async readBookings() {
    const { bookings = [] } = (await this.#api.get('/api/bookings?limit=50')) ?? {};
    this.bookings = bookings.filter((b) => b.showId === this.#showId);
    this.#onChange();
  }

  async readHolds() {
    if (!this.#inside()) return;
    const { holds = [] } = (await this.#api.get(at`/api/shows/${this.#showId}/holds`)) ?? {};
    const before = this.state.hold?.holdId;
    this.#do({ type: 'holds', holds });
    if (this.state.hold?.holdId !== before) this.#pickHeld();
  }

  /** Reads all seats, or those changed since what is known; once more when news came meanwhile. */
  async readSeats() {
    if (this.#reading) return;
    this.#reading = true;
    try {
      do {
        const since = this.seats.version;
        const path = at`/api/shows/${this.#showId}/seats`;
        const answer = await this.#api.get(since > 0 ? `${path}?since=${since}&epoch=${this.seats.epoch}` : path);
        const full = answer.full ?? (since === 0 || answer.epoch !== this.seats.epoch);
        this.#seatsChanged(!full ? this.seats.merge(answer) : this.seats.load(answer));
      } while (this.seats.behind && this.#inside());
    } finally {
      this.#reading = false;
    }
  }

  /** The place was read for want of a socket; so is what else frames would have told. */
  #polled() {
    this.#quietly(async () => {
      const place = this.#client.places.get(this.#showId);
      if (place) this.#do({ type: 'place', place });
      else await this.#placeGone();
      if (this.#inside()) await this.readSeats();
    });
  }

  // Acting: each resolves when the server has answered, and never rejects

  /** Joins with the code given, or with that of the last time; an empty one is none. */
  join(code = this.#code) {
    this.#code = code;
    return this.#act('join', async () => {
      this.#do({ type: 'place', place: await this.#client.join(this.#showId, code), answer: true });
    });
  }

  claim() {
    return this.#act('claim', async () => {
      this.#do({ type: 'place', place: await this.#client.claim(this.#showId), answer: true });
    });
  }

  leave() {
    return this.#act('leave', async () => {
      await this.#client.leave(this.#showId);
      this.picked.clear();
      await this.readPlace();
    });
  }

  /** Picks or unpicks a seat; a seat that cannot be had only explains itself. */
  pick(id) {
    const limit = this.state.show?.seating?.seatLimit ?? 1;
    const state = this.stateOf(id);
    if (this.picked.has(id)) this.picked.delete(id);
    else if (state === 'SOLD' || state === 'HELD') return this.notice(state === 'SOLD' ? `${id} is sold.` : `${id} is in somebody's basket and may come back.`);
    else if (this.picked.size >= limit) return this.notice(`You can choose at most ${plural(limit, 'seat')}.`);
    else this.picked.add(id);
    this.notice('');
    this.#seatsChanged([id]);
  }

  /** Back to the seats that are held. */
  resetPick() {
    const changed = [...this.picked, ...heldSeats(this.state)];
    this.#pickHeld();
    this.#seatsChanged(changed);
  }

  /** Holds the picked seats, or swaps a hold for them in one step. */
  holdPicked() {
    const seats = [...this.picked];
    const hold = this.state.hold;
    return this.#act('hold', async () => {
      const path = at`/api/shows/${this.#showId}/holds`;
      this.#gotHold(hold ? await this.#api.put(path + at`/${hold.holdId}`, { seats }) : await this.#api.post(path, { seats }));
    });
  }

  holdBest(count, section) {
    const best = section ? { count, section } : { count };
    return this.#act('best', async () => {
      this.#gotHold(await this.#api.post(at`/api/shows/${this.#showId}/holds`, { best }));
    });
  }

  extend() {
    return this.#act('extend', async () => {
      this.#gotHold(await this.#api.post(at`/api/shows/${this.#showId}/holds/${this.state.hold.holdId}/extend`, undefined, { safe: true }));
    });
  }

  release(holdId = this.state.hold?.holdId) {
    return this.#act('release', async () => {
      const seats = heldSeats(this.state);
      await this.#api.delete(at`/api/shows/${this.#showId}/holds/${holdId}`);
      if (holdId === this.state.hold?.holdId) {
        this.#do({ type: 'hold-gone' });
        this.picked.clear();
      }
      this.#seatsChanged(seats);
      await this.readHolds();
      await this.readSeats();
    });
  }

  book() {
    return this.#act('book', async () => {
      this.#took(await book(this.#api, this.#showId, this.state.hold.holdId));
    });
  }

  cancel(bookingId) {
    return this.#act('cancel', async () => {
      await this.#api.delete(at`/api/bookings/${bookingId}`);
      this.#follow(bookingId, (b) => b.status === 'CANCELLED');
    });
  }

  notice(notice) {
    this.#do({ type: 'notice', notice });
  }

  bookingSeen() {
    this.#do({ type: 'booking-seen' });
  }

  /** A seat as this person sees it: FREE, HELD, SOLD or MINE. Sold beats held by oneself. */
  stateOf(id) {
    const state = this.seats.state(id);
    return state !== 'SOLD' && heldSeats(this.state).includes(id) ? 'MINE' : state;
  }

  /** A shown deadline has passed: ask the server what is true now. */
  async deadline(kind) {
    if (kind === 'opens') {
      this.#later('opens', Math.random() * 3000, () => this.#quietly(async () => {
        await this.readShow();
        if (this.state.place) await this.readPlace();
      }));
    } else if (kind === 'hold') {
      const { hold } = this.state;
      if (hold) this.#later('hold', HOLD_MARGIN_MS + 1000, () => this.#quietly(() => this.#holdOver()));
    } else {
      this.#later('turn', 1000, () => this.#quietly(() => this.readPlace()));
    }
  }

  // Inside

  #inside() {
    return this.state.place?.status === 'ACTIVE';
  }

  async #act(name, work) {
    if (this.busy) return;
    this.busy = name;
    this.#do({ type: 'notice', notice: '' });
    try {
      await work();
    } catch (err) {
      await this.#refused(err);
    } finally {
      this.busy = '';
      this.#onChange();
    }
  }

  /** Says in words why something was refused, and reads again what the page had wrong. */
  async #refused(err) {
    const { code, problem = {} } = err;
    this.notice(refusal(err));
    await this.#quietly(async () => {
      if (code === 'HOLD_EXPIRED' || code === 'HOLD_NOT_FOUND') this.#do({ type: 'hold-gone' });
      for (const seat of problem.conflicts ?? []) this.picked.delete(seat);
      this.#seatsChanged(problem.conflicts ?? []);
      if (['SOLD_OUT', 'CLOSED', 'NOT_OPEN'].includes(code)) await this.readShow();
      if (['NOT_ADMITTED', 'SOLD_OUT', 'CLOSED', 'OFFLINE'].includes(code)) await this.readPlace();
      if (this.#inside()) {
        await this.readHolds();
        await this.readSeats();
      }
    });
  }

  /** Work in the background: a failure is no news, since the next look repeats it. */
  async #quietly(work) {
    try {
      await work();
    } catch (err) {
      if (err.status === 401) this.notice('Your sign-in has run out. Please sign in again.');
    }
  }

  #do(action) {
    const before = this.state;
    this.state = reduce(before, action);
    if (this.state !== before) this.#effects(before, this.state);
    this.#onChange();
  }

  #effects(before, now) {
    if (now.rejoin && !this.busy) {
      this.state = reduce(now, { type: 'rejoining' });
      this.#later('rejoin', Math.random() * REJOIN_SPREAD_MS, () => this.#rejoin());
    }
    const was = before.place?.status === 'ACTIVE';
    const is = now.place?.status === 'ACTIVE';
    if (now.place?.status === 'ADMITTED' && before.place?.status !== 'ADMITTED') this.hide();
    const seatTopic = `/topic/seats/show/${this.#showId}`;
    if (is && !was) {
      this.#client.follow(seatTopic);
      this.#quietly(async () => { await this.readSeats(); await this.readHolds(); });
    } else if (was && !is) {
      this.#client.unfollow(seatTopic);
      this.picked.clear();
    }
    if (before.hold !== now.hold) this.#seatsChanged([...heldSeats(before), ...heldSeats(now)]);
  }

  async #rejoin() {
    const { notice } = this.state;
    this.#timers.delete('rejoin');
    await this.join();
    if (!this.state.notice) this.notice(notice);
  }

  #frame(frame) {
    if (frame.event === 'HELLO') this.#hello(frame);
    this.#do({ type: 'frame', frame });
    if (!frame.showId || frame.showId === this.#showId) this.#showFrame(frame);
  }

  #showFrame(frame) {
    if (frame.event === 'SEATS') {
      this.#seatsChanged(this.seats.push(frame));
      if (this.seats.behind) this.#later('seats', SEAT_PATIENCE_MS * (1 + Math.random()), () => {
        if (this.seats.behind && this.#inside()) this.#quietly(() => this.readSeats());
      });
    } else if (frame.event === 'SHOW') {
      this.#later('show', Math.random() * 1000, () => this.#quietly(() => this.readShow()));
    } else if (frame.event === 'BOOKING') {
      if (this.state.booking?.bookingId === frame.bookingId) this.#bookingMoved(this.state.booking);
      else this.#quietly(() => this.readBookings());
    }
  }

  /** After a (re)connect what the snapshot lacks is read. */
  #hello(frame) {
    const known = (frame.places ?? []).some((p) => p.showId === this.#showId);
    if (!known && this.state.place) this.#quietly(async () => {
      if (alive(await this.readPlace())) await this.#client.join(this.#showId, this.#code); // finds the place there is
    });
    if (this.#inside()) this.#quietly(async () => { await this.readSeats(); await this.readHolds(); });
  }

  #gotHold(hold) {
    const changed = [...this.picked, ...hold.seats];
    this.#do({ type: 'hold', hold });
    this.#pickHeld();
    this.#seatsChanged(changed);
  }

  #pickHeld() {
    this.picked = new Set(this.state.hold?.seats ?? []);
  }

  async #holdOver() {
    const hold = this.state.hold;
    await this.readHolds();
    if (hold && this.state.hold?.holdId !== hold.holdId && !this.state.booking) {
      this.notice('The time for your seats is over and they were given back. You can choose again.');
    }
    await this.readSeats();
  }

  #took(booking) {
    this.#do({ type: 'booking', booking });
    this.#bookingMoved(booking);
  }

  #bookingMoved(booking) {
    if (!decided(booking)) return void this.#follow(booking.bookingId, decided);
    this.#quietly(async () => {
      await this.readBookings();
      await this.readPlace();
      if (this.#inside()) {
        await this.readHolds();
        await this.readSeats();
      }
    });
  }

  /** Looks at a booking until it is as awaited; the socket tells sooner as a rule. */
  async #follow(bookingId, done) {
    if (this.#follows.has(bookingId)) return;
    this.#follows.add(bookingId);
    for (let attempt = 0; this.#follows.has(bookingId); attempt++) {
      await this.#pause(`booking ${bookingId}`, lookAgainAfter(attempt));
      if (!this.#session.token()) break;
      const known = this.state.booking?.bookingId === bookingId ? this.state.booking : null;
      if (known && done(known)) break; // a frame was faster and has done the rest
      const booking = await this.#api.get(at`/api/bookings/${bookingId}`).catch(() => null);
      if (!booking || !done(booking)) continue;
      if (known) this.#do({ type: 'booking', booking });
      this.#bookingMoved(booking);
      break;
    }
    this.#follows.delete(bookingId);
  }

  #seatsChanged(ids) {
    this.#onChange(ids);
  }

  #later(name, ms, work) {
    clearTimeout(this.#timers.get(name));
    this.#timers.set(name, setTimeout(work, ms));
  }

  #pause(name, ms) {
    return new Promise((done) => this.#later(name, ms, done));
  }
}

/** What a refusal means for the person, and what to do next. */
export function refusal(err) {
  const { problem = {} } = err;
  switch (err.code) {
    case 'SEAT_UNAVAILABLE': return `No longer free: ${seatList(problem.conflicts ?? [])}. The plan is up to date again; please choose others.`;
    case 'NO_BLOCK': return 'There are not that many seats together any more. Try fewer seats or another section.';
    case 'LIMIT_REACHED': return `One person can have at most ${plural(problem.limit ?? 0, 'seat')} at this show` +
      (problem.used ? `, and you have ${problem.used} already.` : '.');
    case 'NOT_ADMITTED': return 'Your turn or your time inside is over.';
    case 'HOLD_EXPIRED': return 'The time for these seats is over and they were given back. Please choose again.';
    case 'HOLD_NOT_FOUND': return 'These seats are not held for you any more. Please choose again.';
    case 'UNKNOWN_SEAT': return 'The plan has changed. Please reload the page and choose again.';
    case 'NOT_OPEN': return `Joining opens ${problem.opensAt ? when(problem.opensAt) : 'later'}.`;
    case 'SOLD_OUT': return 'This show is sold out.';
    case 'CLOSED': return 'The sale of this show has ended.';
    case 'IN_PROGRESS': return 'This is being worked on already. Please wait a moment.';
    case 'OFFLINE': return 'The server cannot be reached. Check your connection; your place is kept for a while.';
    default: return err.status === 401 ? 'Your sign-in has run out. Please sign in again.' : err.message;
  }
}

function isHidden() {
  return globalThis.document?.visibilityState === 'hidden';
}
