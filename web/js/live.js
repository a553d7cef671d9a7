// The live connection: a socket while it works, polling while it does not.

/** Reconnecting waits a random time between one second and this, growing. */
export const MAX_BACKOFF_MS = 30_000;
const MIN_BACKOFF_MS = 1000;
/** A connection that lasted this long clears the memory of failures. */
export const STABLE_MS = 30_000;
/** Without a frame for this long the connection is taken for dead. */
export const SILENCE_MS = 45_000;
/** Timers of a hidden tab run about once a minute: judge it more mildly. */
export const HIDDEN_SILENCE_MS = 180_000;
const OPEN_TIMEOUT_MS = 12_000;
const WATCH_MS = 5000;
/** Opens that fail in a row before polling starts, and the pause between opens from then on. */
export const OPENS_BEFORE_POLLING = 2;
const SLOW_RETRY_MS = [20_000, 60_000];
const OVERLOADED_MS = [5000, 30_000];
/** The longest window that is believed. */
const MAX_WINDOW_MS = 300_000;
const DEFAULT_POLL_MS = 5000;
const MIN_POLL_MS = 1000;
/** The server takes 5 frames a second with a burst of 10; this stays below. */
const SEND_BURST = 6;
const SEND_EVERY_MS = 300;

/** Full jitter: any time between one second and a ceiling that doubles. */
export function backoff(attempt, random = Math.random) {
  const ceiling = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (attempt + 1));
  return MIN_BACKOFF_MS + random() * (ceiling - MIN_BACKOFF_MS);
}

/**
 * The window of time that a close reason asks to wait, in milliseconds: the
 * numbers in it as "A-B" or as a single upper end, in ms or (by default) seconds.
 */
export function retryWindow(reason) {
  const found = /(\d+(?:\.\d+)?)\s*(ms|s)?(?:\s*(?:-|–|\.\.|to)\s*(\d+(?:\.\d+)?))?\s*(ms|s)?/i.exec(reason ?? '');
  if (!found) return null;
  const scale = (found[4] ?? found[2] ?? (/ms\b/i.test(reason) ? 'ms' : 's')).toLowerCase() === 'ms' ? 1 : 1000;
  const first = Number(found[1]) * scale;
  const window = found[3] === undefined ? [0, first] : [first, Number(found[3]) * scale];
  return window[0] <= window[1] && window[1] <= MAX_WINDOW_MS ? window : null;
}

/**
 * What a close code asks of us: {reconnect, window, renew}. Final are 1000,
 * 1009 and 4500 to 4999; with 4001 the token must be renewed first; 1012 and 1013 say when.
 */
export function closeVerdict(code, reason = '') {
  if (code === 1000 || code === 1009 || (code >= 4500 && code <= 4999)) return { reconnect: false, window: null, renew: false };
  if (code === 1012) return { reconnect: true, window: retryWindow(reason), renew: false };
  if (code === 1013) return { reconnect: true, window: retryWindow(reason) ?? OVERLOADED_MS, renew: false };
  return { reconnect: true, window: null, renew: code === 4001 };
}

/**
 * FrameFilter lets a frame through unless a newer one of its topic came before.
 * A new epoch of a show starts its topics afresh. Seats, bookings and chat have
 * an order of their own and pass.
 */
export class FrameFilter {
  static #ordered = new Set(['ADMISSION', 'RANK', 'STATS', 'SOLD_OUT']);
  #seen = new Map();

  accept(frame) {
    if (!FrameFilter.#ordered.has(frame.event) || !frame.version) return true;
    const topic = `${frame.topic ?? frame.event} ${frame.showId ?? ''}`;
    const last = this.#seen.get(topic);
    const epoch = frame.epoch ?? 0;
    if (last && (epoch < last.epoch || (epoch === last.epoch && frame.version < last.version))) return false;
    this.#seen.set(topic, { epoch, version: frame.version });
    return true;
  }
}

/** What a browser gives; tests give their own. */
const browser = {
  WebSocket: globalThis.WebSocket,
  now: () => performance.now(),
  setTimeout: (f, ms) => globalThis.setTimeout(f, ms),
  clearTimeout: (id) => globalThis.clearTimeout(id),
  random: Math.random,
  hidden: () => globalThis.document?.visibilityState === 'hidden',
};

/**
 * Live owns one socket and follows topics over reconnects. It is started once;
 * stop is final, closes a socket even while it is being opened, and is safe twice.
 */
export class Live {
  #env; #hooks; #topics = new Set(); #filter = new FrameFilter();
  #socket = null; #open = false; #stopped = true;
  #opening = 0; #turns = 0; // which attempt is under way; 0: none
 
  #attempt = 0; #failedOpens = 0; #lastFrame = 0; #lastPause = null;
  #retryTimer; #openTimer; #stableTimer; #watchTimer; #pollTimer; #sendTimer;
  #polling = false; #outbox = []; #budget = SEND_BURST;

  /**
   * @param hooks.url(ticket)  address of the socket
   * @param hooks.ticket()     resolves to a one-time ticket
   * @param hooks.renew()      resolves when the identity token was renewed
   * @param hooks.poll()       reads the place; resolves to it (for pollAfterMs)
   * @param hooks.onFrame(frame), hooks.onLink(link), hooks.onStop(code, reason)
   */
  constructor(hooks, env = {}) {
    this.#hooks = hooks;
    this.#env = { ...browser, ...env };
  }

  start() {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#connect();
    this.#watch();
  }

  stop() {
    this.#stopped = true;
    this.#dropSocket();
    this.#stopPolling();
    for (const timer of [this.#retryTimer, this.#watchTimer, this.#sendTimer]) this.#env.clearTimeout(timer);
    this.#sendTimer = null;
    this.#hooks.onLink('off');
  }

  get open() {
    return this.#open;
  }

  follow(topic) {
    if (this.#topics.has(topic)) return;
    this.#topics.add(topic);
    if (this.#open) this.send({ type: 'subscribe', topic });
  }

  unfollow(topic) {
    if (!this.#topics.delete(topic)) return;
    if (this.#open) this.send({ type: 'unsubscribe', topic });
  }

  /** Sends when connected, within the server's rate; false when not connected. */
  send(frame) {
    if (!this.#open) return false;
    this.#outbox.push(JSON.stringify(frame));
    this.#flush();
    return true;
  }

  /** Looks at once: after the network came back or the tab was shown again. */
  check() {
    if (this.#stopped) return;
    if (!this.#socket && !this.#opening) {
      this.#env.clearTimeout(this.#retryTimer);
      this.#connect();
    } else if (this.#open && this.#env.now() - this.#lastFrame > SILENCE_MS) {
      this.#lost();
    }
    if (this.#polling) this.#pollNow();
  }

  async #connect() {
    if (this.#stopped || this.#opening || this.#socket) return;
    const turn = this.#opening = ++this.#turns;
    if (!this.#polling) this.#hooks.onLink('connecting');
    let ticket;
    try {
      ticket = await this.#hooks.ticket();
    } catch (err) {
      if (this.#opening !== turn) return;
      this.#opening = 0;
      if (err.status === 401 || err.status === 403) return this.#end(4501, 'not signed in');
      return this.#failed(err.retryAfterMs ?? null);
    }
    if (this.#opening !== turn) return;
    this.#opening = 0;
    if (!this.#stopped) this.#dial(ticket);
  }

  #dial(ticket) {
    const socket = new this.#env.WebSocket(this.#hooks.url(ticket), ['foyer.v1']);
    this.#socket = socket;
    const mine = (handle) => (event) => { if (this.#socket === socket) handle(event); };
    socket.onopen = mine(() => this.#opened());
    socket.onmessage = mine((event) => this.#received(event.data));
    socket.onclose = mine((event) => this.#closed(event.code, event.reason));
    this.#openTimer = this.#env.setTimeout(() => {
      this.#dropSocket();
      this.#failed();
    }, OPEN_TIMEOUT_MS);
  }

  #opened() {
    this.#env.clearTimeout(this.#openTimer);
    this.#open = true;
    this.#failedOpens = 0;
    this.#lastFrame = this.#env.now();
    this.#stopPolling();
    this.#outbox = [];
    this.#budget = SEND_BURST;
    this.#stableTimer = this.#env.setTimeout(() => { this.#attempt = 0; }, STABLE_MS);
    this.#hooks.onLink('live');
    for (const topic of this.#topics) this.send({ type: 'subscribe', topic });
  }

  #received(data) {
    this.#lastFrame = this.#env.now();
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return; // not ours; the next one may be
    }
    if (this.#filter.accept(frame)) this.#hooks.onFrame(frame);
  }

  async #closed(code, reason) {
    const wasOpen = this.#open;
    this.#dropSocket();
    const verdict = closeVerdict(code, reason);
    if (!verdict.reconnect) return this.#end(code, reason);
    if (!wasOpen) return this.#failed();
    if (!this.#polling) this.#hooks.onLink('connecting');
    if (verdict.renew) await this.#hooks.renew();
    this.#retryIn(verdict.window);
  }

  /** The connection is silent: its close might never be reported, so it is not waited for. */
  #lost() {
    this.#dropSocket();
    this.#hooks.onLink('connecting');
    this.#retryIn(null);
  }

  #failed(retryAfterMs = null) {
    this.#failedOpens++;
    if (this.#failedOpens >= OPENS_BEFORE_POLLING) this.#startPolling();
    const window = this.#polling ? SLOW_RETRY_MS : null;
    this.#retryIn(retryAfterMs === null ? window : [retryAfterMs, retryAfterMs * 2 + MIN_BACKOFF_MS]);
  }

  #retryIn(window) {
    if (this.#stopped) return;
    const { random } = this.#env;
    const wait = window ? window[0] + random() * Math.max(0, window[1] - window[0]) : backoff(this.#attempt, random);
    this.#attempt++;
    this.#lastPause = wait;
    this.#env.clearTimeout(this.#retryTimer);
    this.#retryTimer = this.#env.setTimeout(() => this.#connect(), wait);
  }

  /** Milliseconds of the last pause before reconnecting, for tests and the log. */
  get lastPause() {
    return this.#lastPause;
  }

  #end(code, reason) {
    this.stop();
    this.#hooks.onLink('stopped');
    this.#hooks.onStop(code, reason);
  }

  #dropSocket() {
    const socket = this.#socket;
    this.#socket = null;
    this.#open = false;
    this.#opening = 0;
    this.#env.clearTimeout(this.#openTimer);
    this.#env.clearTimeout(this.#stableTimer);
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close(); // also while connecting: nothing may be left dialing
  }

  /** Judges by timestamps, since a hidden tab's timers come late. */
  #watch() {
    this.#watchTimer = this.#env.setTimeout(() => {
      if (this.#stopped) return;
      const limit = this.#env.hidden() ? HIDDEN_SILENCE_MS : SILENCE_MS;
      if (this.#open && this.#env.now() - this.#lastFrame > limit) this.#lost();
      this.#watch();
    }, WATCH_MS);
  }

  #startPolling() {
    if (this.#polling || this.#stopped) return;
    this.#polling = true;
    this.#hooks.onLink('polling');
    this.#pollNow();
  }

  #stopPolling() {
    this.#polling = false;
    this.#env.clearTimeout(this.#pollTimer);
  }

  async #pollNow() {
    this.#env.clearTimeout(this.#pollTimer);
    let wait = DEFAULT_POLL_MS;
    let link = 'polling';
    try {
      wait = (await this.#hooks.poll())?.pollAfterMs ?? DEFAULT_POLL_MS;
    } catch {
      link = 'offline'; // the next look may succeed
    }
    if (!this.#polling || this.#stopped) return;
    this.#hooks.onLink(link);
    this.#env.clearTimeout(this.#pollTimer);
    this.#pollTimer = this.#env.setTimeout(() => this.#pollNow(), Math.max(MIN_POLL_MS, wait));
  }

  #flush() {
    while (this.#open && this.#budget > 0 && this.#outbox.length > 0) {
      this.#budget--;
      this.#socket.send(this.#outbox.shift());
    }
    if (this.#sendTimer || this.#budget >= SEND_BURST) return;
    this.#sendTimer = this.#env.setTimeout(() => {
      this.#sendTimer = null;
      this.#budget++;
      this.#flush();
    }, SEND_EVERY_MS);
  }
}
