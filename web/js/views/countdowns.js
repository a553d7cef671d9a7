// Every countdown of the page, on one timer and on the server's clock.

import { countdown, spokenTime } from '../text.js';

const TICK_MS = 250;
const SOON_MS = 30_000;
/** When a screen reader is told how much time is left. */
const SPOKEN_AT_MS = [60_000, 30_000, 10_000];

export class Countdowns {
  #clock; #say; #running = new Map();

  /** @param clock a ServerClock; @param say speaks to a screen reader */
  constructor(clock, say) {
    this.#clock = clock;
    this.#say = say;
    setInterval(() => this.#tick(), TICK_MS);
  }

  /**
   * set shows the time until `at` in an element; null stops it. `over` is called
   * once a deadline. With a `name` it is time that is lost: it is shown as urgent and
   * spoken as it gets short.
   */
  set(element, at, { over = () => {}, name = '' } = {}) {
    const known = this.#running.get(element);
    if (!at) {
      this.#running.delete(element);
      return;
    }
    if (known?.at === at) return;
    this.#running.set(element, { at, over, name, done: false, last: null });
    this.#paint(element, this.#running.get(element));
  }

  #tick() {
    for (const [element, entry] of this.#running) this.#paint(element, entry);
  }

  #paint(element, entry) {
    const left = this.#clock.until(entry.at);
    const shown = countdown(left);
    if (element.textContent !== shown) element.textContent = shown;
    element.dataset.soon = String(entry.name !== '' && left <= SOON_MS);
    if (entry.name && entry.last !== null) {
      const passed = SPOKEN_AT_MS.find((t) => entry.last > t && left <= t && left > 0);
      if (passed) this.#say(`${entry.name}: ${spokenTime(passed)} left`);
    }
    entry.last = left;
    if (left === 0 && !entry.done) {
      entry.done = true;
      entry.over();
    }
  }
}
