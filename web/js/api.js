// HTTP to the server: the token, errors with a code, and patient retries.

/** Retries of one call after "not now" answers or a lost connection. */
export const MAX_RETRIES = 3;
/** The longest that one call waits because of Retry-After, in milliseconds. */
export const MAX_RETRY_WAIT_MS = 30_000;

/** ApiError is an answer other than success. `code` is stable and meant for decisions. */
export class ApiError extends Error {
  constructor(status, problem = {}, retryAfterMs = null) {
    super(problem.detail || problem.title || `The server answered ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = problem.code ?? '';
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }
}

/** OfflineError means that no answer came at all. */
export class OfflineError extends Error {
  constructor(cause) {
    super('The server cannot be reached', { cause });
    this.name = 'OfflineError';
    this.code = 'OFFLINE';
  }
}

/** Retry-After in milliseconds: delta seconds or an HTTP date; null when absent. */
export function retryAfter(header, now = Date.now()) {
  if (!header) return null;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const at = Date.parse(header);
  return Number.isFinite(at) ? Math.max(0, at - now) : null;
}

/** The server asked to come back later, and says when. */
function comeBackLater(err) {
  if (!(err instanceof ApiError) || err.retryAfterMs === null) return false;
  return err.status === 503 || err.status === 429 || err.code === 'IN_PROGRESS';
}

export class Api {
  #fetch; #session; #clock; #sleep; #random;

  /**
   * @param session has token() and refresh(), the latter resolving to true when
   *   there is a new token; may be null for public calls
   * @param clock a ServerClock that learns from every answer
   */
  constructor({ session = null, clock = null, fetch = (...a) => globalThis.fetch(...a), sleep = pause, random = Math.random } = {}) {
    this.#fetch = fetch;
    this.#session = session;
    this.#clock = clock;
    this.#sleep = sleep;
    this.#random = random;
  }

  get(path, options) { return this.call('GET', path, undefined, options); }
  post(path, body, options) { return this.call('POST', path, body, options); }
  put(path, body, options) { return this.call('PUT', path, body, options); }
  patch(path, body, options) { return this.call('PATCH', path, body, options); }
  delete(path, options) { return this.call('DELETE', path, undefined, options); }

  /**
   * call resolves to the decoded body (null when there is none), and rejects with
   * ApiError or OfflineError. `safe` says that a lost answer may be asked for
   * again: true for GET, PUT and DELETE, and for a POST that the server recognises.
   */
  async call(method, path, body, { headers = {}, safe = method !== 'POST' && method !== 'PATCH', retries = MAX_RETRIES } = {}) {
    let refreshed = false;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, path, body, headers);
      } catch (err) {
        if (err.status === 401 && this.#session && !refreshed) {
          refreshed = true;
          if (await this.#session.refresh()) { attempt--; continue; }
          throw err;
        }
        const again = comeBackLater(err) || (safe && err instanceof OfflineError);
        if (!again || attempt >= retries) throw err;
        await this.#sleep(this.#delay(err, attempt));
      }
    }
  }

  /** What the server said, plus a little chance so that a crowd does not come back as one. */
  #delay(err, attempt) {
    const base = err.retryAfterMs ?? 500 * 2 ** attempt;
    return Math.min(MAX_RETRY_WAIT_MS, base + this.#random() * Math.max(250, base / 2));
  }

  async #once(method, path, body, headers) {
    const init = { method, headers: { Accept: 'application/json', ...headers }, cache: 'no-store' };
    const token = this.#session?.token();
    if (token) init.headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) {
      init.headers['Content-Type'] = 'application/json';
      init.body = JSON.stringify(body);
    }
    const sent = this.#clock?.mark();
    let response, text;
    try {
      response = await this.#fetch(path, init);
      text = await response.text();
    } catch (err) {
      throw new OfflineError(err);
    }
    const data = decode(text);
    this.#learnTime(response, data, sent);
    if (!response.ok) throw new ApiError(response.status, data ?? {}, retryAfter(response.headers.get('Retry-After')));
    return data;
  }

  /** serverTime in a body is exact; the Date header is good to a second. */
  #learnTime(response, data, sent) {
    if (!this.#clock) return;
    if (data?.serverTime) this.#clock.sample(data.serverTime, sent);
    else if (response.headers.get('Date')) this.#clock.sample(response.headers.get('Date'), sent, undefined, 1000);
  }
}

function decode(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function pause(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

/** A path with its variable parts escaped: at`/api/shows/${id}`. */
export function at(strings, ...values) {
  return strings.reduce((path, part, i) => path + encodeURIComponent(values[i - 1]) + part);
}
