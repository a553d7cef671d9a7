// Helpers of the tests: a storage, answers, and a world whose time is set by hand.

export function storage() {
  const values = new Map();
  return {
    getItem: (name) => values.get(name) ?? null,
    setItem: (name, value) => { values.set(name, String(value)); },
    removeItem: (name) => { values.delete(name); },
  };
}

export function answer(status, body, headers = {}) {
  return new Response(body === undefined ? null : JSON.stringify(body), { status, headers });
}

/** Lets everything that is already due happen. */
export async function settle() {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** Timers that run when `advance` says so. */
export class World {
  time = 0;
  hiddenTab = false;
  chance = 0.5;
  sockets = [];
  #timers = new Map();
  #next = 1;

  env() {
    const world = this;
    return {
      WebSocket: class {
        constructor(url, protocols) {
          Object.assign(this, { url, protocols, sent: [], closed: false });
          world.sockets.push(this);
        }
        send(data) { this.sent.push(JSON.parse(data)); }
        close() { this.closed = true; }
      },
      now: () => this.time,
      random: () => this.chance,
      hidden: () => this.hiddenTab,
      setTimeout: (work, ms) => { this.#timers.set(this.#next, { at: this.time + ms, work }); return this.#next++; },
      clearTimeout: (id) => { this.#timers.delete(id); },
    };
  }

  get socket() {
    return this.sockets.at(-1);
  }

  get pending() {
    return this.#timers.size;
  }

  async advance(ms) {
    const end = this.time + ms;
    for (;;) {
      await settle();
      const due = [...this.#timers].filter(([, t]) => t.at <= end).sort((a, b) => a[1].at - b[1].at)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.time = Math.max(this.time, due[1].at);
      due[1].work();
    }
    this.time = end;
    await settle();
  }
}
