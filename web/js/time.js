// The server's clock, as well as the page can know it. Every countdown is taken
// from here: a visitor's own clock may be wrong by hours.

/** Drift allowed between two clocks, in milliseconds per millisecond of age. */
const DRIFT = 1e-4;

/**
 * ServerClock keeps the offset between the server's wall clock and a monotonic
 * local one. Each sample is an interval in which the true offset must lie; the
 * narrowest wins, and one that contradicts the kept interval replaces it, since
 * then a clock was set or the machine slept.
 */
export class ServerClock {
  #monotonic;
  #offset = null; // milliseconds to add to the monotonic clock
  #spread = Infinity;
  #takenAt = 0;

  /** @param monotonic milliseconds that never run backwards */
  constructor(monotonic = () => performance.now()) {
    this.#monotonic = monotonic;
  }

  /** The local instant to remember before a request is sent. */
  mark() {
    return this.#monotonic();
  }

  /**
   * sample learns from an answer: server is the time in it, sent and received
   * are marks around the request, slack is the resolution of the server's value.
   */
  sample(server, sent, received = this.#monotonic(), slack = 0) {
    const at = server instanceof Date ? server.getTime() : Date.parse(server);
    if (!Number.isFinite(at)) return;
    const spread = (received - sent) / 2 + slack / 2;
    const offset = at + slack / 2 - (sent + received) / 2;
    const known = this.#spread + (received - this.#takenAt) * DRIFT;
    const contradicts = this.#offset !== null && Math.abs(offset - this.#offset) > spread + known;
    if (this.#offset !== null && spread > known && !contradicts) return;
    this.#offset = offset;
    this.#spread = spread;
    this.#takenAt = received;
  }

  /** True once an answer of the server was seen. */
  get known() {
    return this.#offset !== null;
  }

  /** Server time in milliseconds since 1970; the local guess until an answer was seen. */
  now() {
    if (this.#offset === null) return Date.now();
    return this.#monotonic() + this.#offset;
  }

  /** Milliseconds until an instant, never negative; null when there is none. */
  until(instant) {
    if (!instant) return null;
    return Math.max(0, Date.parse(instant) - this.now());
  }
}

/** The server keeps a hold this much longer than the page shows it. */
export const HOLD_MARGIN_MS = 5000;

/**
 * shownHoldDeadline is the instant at which the page's countdown of a hold ends,
 * earlier than the server's, so that a click in the last second still counts.
 * A very short hold gives up a quarter of its life at most.
 */
export function shownHoldDeadline(hold) {
  const end = Date.parse(hold.expiresAt);
  const life = end - Date.parse(hold.serverTime ?? hold.expiresAt);
  const margin = life > 0 ? Math.min(HOLD_MARGIN_MS, life / 4) : HOLD_MARGIN_MS;
  return new Date(end - margin).toISOString();
}
