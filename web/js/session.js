// Who is signed in, in this tab. The token lives in sessionStorage: it ends with
// the tab and is never put in an address that is sent to the server.

import { Api } from './api.js';

/** NoDevSignIn says that the server does not hand out tokens by name. */
export class NoDevSignIn extends Error {}

/** The claims of a JWT, unverified and for display only; {} when it is none. */
export function claims(token) {
  try {
    const part = token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/');
    const bytes = Uint8Array.from(atob(part), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return {};
  }
}

/** The subject that a name signs in as: the same name is the same person. */
export function subjectOf(name) {
  return name.trim().toLowerCase().replace(/\s+/g, '-');
}

export class Session {
  #storage; #key; #api; #roles;
  #refreshing = null;

  /** @param key where in the storage; @param roles asked for on signing in by name */
  constructor({ storage = globalThis.sessionStorage, key = 'foyer.session', roles = [], api = new Api() } = {}) {
    this.#storage = storage;
    this.#key = key;
    this.#roles = roles;
    this.#api = api;
  }

  #read() {
    try {
      return JSON.parse(this.#storage.getItem(this.#key)) ?? null;
    } catch {
      return null;
    }
  }

  #write(value) {
    if (value) this.#storage.setItem(this.#key, JSON.stringify(value));
    else this.#storage.removeItem(this.#key);
  }

  token() {
    return this.#read()?.token ?? null;
  }

  /** {id, name} of the signed-in person, or null. */
  person() {
    const token = this.token();
    if (!token) return null;
    const { sub, name } = claims(token);
    return { id: sub ?? '', name: name || sub || 'You' };
  }

  /** Signs in by name where the server allows it, else fails with NoDevSignIn. */
  async signIn(name) {
    const who = { sub: subjectOf(name), name: name.trim(), roles: this.#roles };
    try {
      const { token } = await this.#api.post('/api/dev/token', who);
      this.#write({ token, dev: who });
    } catch (err) {
      if (err.status === 404 || err.status === 405) throw new NoDevSignIn('sign-in by name is off', { cause: err });
      throw err;
    }
  }

  /** Signs in with a token from elsewhere. */
  useToken(token) {
    this.#write({ token: token.trim() });
  }

  /** Takes `#token=` from the address, and takes it out of the address and the history. */
  adoptFragment(location = globalThis.location, history = globalThis.history) {
    const params = new URLSearchParams(location.hash.slice(1));
    const token = params.get('token');
    if (!token) return false;
    this.useToken(token);
    history.replaceState(null, '', location.pathname + location.search);
    return true;
  }

  /**
   * A new token in place of a refused one: true when there is one. Several calls
   * that fail together share one refresh.
   */
  refresh() {
    this.#refreshing ??= this.#renew().finally(() => { this.#refreshing = null; });
    return this.#refreshing;
  }

  async #renew() {
    const dev = this.#read()?.dev;
    if (!dev) return false;
    try {
      const { token } = await this.#api.post('/api/dev/token', dev);
      this.#write({ token, dev });
      return true;
    } catch {
      return false;
    }
  }

  signOut() {
    this.#write(null);
  }
}
