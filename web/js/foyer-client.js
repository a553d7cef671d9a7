// Foyer for any page: one's places, turns and bookings as events, over a socket
// while there is one and by polling while there is none. Described in docs/client-js.md.

import { Api, at } from './api.js';
import { Live } from './live.js';

export { ApiError, OfflineError } from './api.js';

/** How often the place is read while there is no socket, when the server does not say. */
const POLL_MS = 5000;

/**
 * What Live needs in order to open sockets at a server: its address, tickets, and
 * a new token when the old one is over.
 */
function socketOf({ api, session, base = globalThis.location?.origin }) {
  return {
    url: (ticket) => `${base.replace(/^http/, 'ws')}/ws?ticket=${encodeURIComponent(ticket)}`,
    ticket: async () => (await api.post('/api/socket-tickets')).ticket,
    renew: () => session.refresh(),
  };
}

/** The DOM event of a frame: CHAT_MESSAGE is chatmessage. */
export const nameOf = (frame) => frame.event.replaceAll('_', '').toLowerCase();

/** Whether a place is news beside the one known: a version never goes back within an epoch. */
export function newer(place, known) {
  if (!known) return true;
  if (place.epoch !== known.epoch) return place.epoch > known.epoch;
  return place.version >= known.version;
}

/** An event with what it is about in `detail`, which not every runtime has. */
class Told extends Event {
  constructor(name, detail) {
    super(name);
    this.detail = detail;
  }
}

/**
 * FoyerClient is one person at one server. Its events:
 *
 * - place: detail is the newest Place of a show, whatever told it (HELLO, ADMISSION,
 *   RANK, an answer, a poll); lost: detail.showId, a place that is not there any more;
 * - admission, rank, stats, soldout, seats, booking, chatmessage, chatread, show,
 *   error, hello, heartbeat: detail is the frame, as asyncapi.yaml describes it;
 * - frame: detail is any frame, after the event of its own name;
 * - poll: the places that were asked for were read over HTTP, for want of a socket;
 * - link: detail is connecting, live, polling, offline, stopped or off;
 * - stop: detail {code, reason}; the server asked not to come back.
 */
export class FoyerClient extends EventTarget {
  /** The newest known place by show id. */
  places = new Map();
  #api; #live; #shows = new Set();

  /**
   * @param base    origin of the server; default: the page's own
   * @param token   returns the person's identity token
   * @param refresh resolves to true when token returns a new one
   * @param api     of Foyer's own pages, which make requests beside: instead of a token
   * @param env     stands in for what a browser gives, for tests
   */
  constructor({ base = globalThis.location?.origin, token, refresh = async () => false, api, fetch = (...a) => globalThis.fetch(...a), env = {} }) {
    super();
    const session = { token, refresh };
    this.#api = api ?? new Api({ session, fetch: (path, init) => fetch(base + path, init) });
    this.#live = new Live({
      ...socketOf({ api: this.#api, session, base }),
      poll: () => this.#poll(),
      onFrame: (frame) => this.#frame(frame),
      onLink: (link) => this.#tell('link', link),
      onStop: (code, reason) => this.#tell('stop', { code, reason }),
    }, env);
  }

  /** Opens the socket, and from then on keeps one. */
  connect() { this.#live.start(); }

  /** Closes it. Nobody loses a place by it that comes back within the show's grace. */
  close() { this.#live.stop(); }

  /** Closes it and forgets all places, for somebody else to come. */
  forget() {
    this.close();
    this.places.clear();
    this.#shows.clear();
  }

  /** Looks at once whether all is well: after the network came back, or the page was shown again. */
  check() { this.#live.check(); }

  /**
   * Joins a show, or finds the place that one has there. Resolves to the Place. With a code
   * it is in the code's lane; rejects with INVALID_CODE, and joins nothing, when the code
   * does not count.
   */
  async join(showId, code) {
    this.#shows.add(showId);
    const place = await this.#api.post(at`/api/shows/${showId}/admission`, code ? { code } : undefined, { safe: true });
    this.#live.send({ type: 'join', showId }); // so that the socket knows, should the word of it be lost
    return this.#learn(place);
  }

  /** Reads one's place at a show; null when there is none. From then on it is among what is polled. */
  async place(showId) {
    this.#shows.add(showId);
    try {
      return this.#learn(await this.#api.get(at`/api/shows/${showId}/admission`));
    } catch (err) {
      if (err.status !== 404) throw err;
      this.#lose(showId);
      return null;
    }
  }

  /** Takes the turn. Resolves to the Place, with the pass. */
  async claim(showId) {
    return this.#learn(await this.#api.post(at`/api/shows/${showId}/admission/claim`, undefined, { safe: true }));
  }

  /** Gives the place up. */
  async leave(showId) {
    this.#shows.delete(showId);
    await this.#api.delete(at`/api/shows/${showId}/admission`);
    this.places.delete(showId);
  }

  /** Hears of a topic, also after every reconnect. Topics of one's own places need no asking for. */
  follow(topic) { this.#live.follow(topic); }

  unfollow(topic) { this.#live.unfollow(topic); }

  /** Any other request of the contract: `client.call('GET', '/api/bookings')`. */
  call(method, path, body, options) { return this.#api.call(method, path, body, options); }

  #tell(name, detail) { this.dispatchEvent(new Told(name, detail)); }

  #frame(frame) {
    if (frame.event === 'HELLO') this.#resync(frame.places ?? []);
    if (frame.event === 'ADMISSION' && frame.place) this.#learn(frame.place);
    if (frame.event === 'RANK') this.#rank(frame);
    if (!frame.event) return;
    this.#tell(nameOf(frame), frame);
    this.#tell('frame', frame);
  }

  /** HELLO has all places there are: what is not among them is gone. */
  #resync(places) {
    for (const place of places) this.#learn(place);
    const there = new Set(places.map((place) => place.showId));
    for (const showId of this.places.keys()) if (!there.has(showId)) this.#lose(showId);
  }

  #lose(showId) {
    if (this.places.delete(showId)) this.#tell('lost', { showId });
  }

  #learn(place) {
    if (!newer(place, this.places.get(place.showId))) return this.places.get(place.showId);
    this.#shows.add(place.showId);
    this.places.set(place.showId, place);
    this.#tell('place', place);
    return place;
  }

  #rank({ showId, epoch, version, rank, waiting, eta, at: serverTime }) {
    const known = this.places.get(showId);
    if (!known || known.status !== 'WAITING' || known.epoch !== epoch) return;
    this.#learn({ ...known, version: Math.max(version, known.version), rank, waiting, eta, serverTime });
  }

  /** Reads every place; resolves to the soonest time at which one is to be read again. */
  async #poll() {
    let pollAfterMs = Infinity;
    for (const showId of this.#shows) pollAfterMs = Math.min(pollAfterMs, (await this.place(showId))?.pollAfterMs || Infinity);
    this.#tell('poll', {});
    return { pollAfterMs: Number.isFinite(pollAfterMs) ? pollAfterMs : POLL_MS };
  }
}
