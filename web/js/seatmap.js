// The state of every seat of a show, merged from answers and frames that may
// come late, twice or out of order.

/** Seat ids of a section's row. */
export function seatId(section, row, number) {
  return `${section}-${row}-${number}`;
}

/** The section of a seat id; section names may contain hyphens. */
export function sectionOf(id) {
  return id.replace(/-\d+-\d+$/, '');
}

/**
 * SeatMap remembers seats that are not free. A change is applied only when it is
 * not older than what is known of that seat. `behind` is true while a version in
 * between is missing: then the seats since `version` must be read again.
 */
export class SeatMap {
  epoch = 0;
  version = 0; // every change up to here is in the map
  #states = new Map(); // seat -> HELD | SOLD; absent is FREE
  #changedAt = new Map(); // seat -> version of its last change
  #early = new Map(); // versions seen that do not join on yet -> where they start
  #newest = 0;

  state(id) {
    return this.#states.get(id) ?? 'FREE';
  }

  get loaded() {
    return this.version > 0 || this.epoch > 0;
  }

  get behind() {
    return this.#newest > this.version;
  }

  /** Seats of a section by state, for its heading. */
  tally(section, capacity) {
    let held = 0, sold = 0;
    for (const [id, state] of this.#states) {
      if (sectionOf(id) !== section) continue;
      if (state === 'SOLD') sold++;
      else held++;
    }
    return { free: Math.max(0, capacity - held - sold), held, sold };
  }

  /** The whole map from an answer; returns the ids that look different now. */
  load({ epoch = 0, version = 0, seats = [] }) {
    if (epoch < this.epoch || (epoch === this.epoch && version < this.version)) return [];
    if (epoch > this.epoch) this.#forget(epoch);
    const listed = new Map(seats.map((s) => [s.id, s.state]));
    const changed = [];
    for (const id of [...this.#states.keys()]) {
      if (!listed.has(id)) listed.set(id, 'FREE');
    }
    for (const [id, state] of listed) this.#set(id, state, version, changed);
    this.#reach(version);
    return changed;
  }

  /** Changes since an earlier version from an answer. */
  merge({ epoch = 0, version = 0, seats = [] }) {
    if (epoch > this.epoch) return this.load({ epoch, version, seats });
    if (epoch < this.epoch) return [];
    const changed = [];
    for (const { id, state } of seats) this.#set(id, state, version, changed);
    if (version > this.version) this.#reach(version);
    return changed;
  }

  /**
   * One pushed change. It leads from the version `since` to its own; without a
   * `since` from the one before. One that starts later than what is known leaves
   * the map behind. A new epoch empties the map first.
   */
  push({ epoch = this.epoch, version = 0, since = version - 1, seats = [] }) {
    if (epoch < this.epoch) return [];
    if (since === 0 && version > 1) return this.load({ epoch, version, seats });
    const changed = [];
    if (epoch > this.epoch) {
      changed.push(...this.#states.keys());
      this.#forget(epoch);
    }
    for (const { id, state } of seats) this.#set(id, state, version, changed);
    this.#newest = Math.max(this.#newest, version);
    if (version > this.version) {
      this.#early.set(version, since);
      this.#reach(this.version);
    }
    return changed;
  }

  #set(id, state, version, changed) {
    if (version < (this.#changedAt.get(id) ?? 0)) return;
    this.#changedAt.set(id, version);
    if (this.state(id) === state) return;
    if (state === 'FREE') this.#states.delete(id);
    else this.#states.set(id, state);
    changed.push(id);
  }

  /** Moves to a version, and on through those that came early without a hole. */
  #reach(version) {
    this.version = Math.max(this.version, version);
    const early = [...this.#early].sort(([a], [b]) => a - b);
    for (const [end, start] of early) {
      if (start > this.version) continue;
      this.version = Math.max(this.version, end);
      this.#early.delete(end);
    }
    this.#newest = Math.max(this.#newest, this.version);
  }

  #forget(epoch) {
    this.epoch = epoch;
    this.version = 0;
    this.#newest = 0;
    this.#states.clear();
    this.#changedAt.clear();
    this.#early.clear();
  }
}

/**
 * The seat to move focus to from one at (row, number) by a key, in a block of
 * rows; null when the key moves nothing.
 */
export function moveFocus(key, ctrl, { row, number }, { firstRow, lastRow, seatsPerRow }) {
  const within = (low, n, high) => Math.min(high, Math.max(low, n));
  switch (key) {
    case 'ArrowLeft': return { row, number: within(1, number - 1, seatsPerRow) };
    case 'ArrowRight': return { row, number: within(1, number + 1, seatsPerRow) };
    case 'ArrowUp': return { row: within(firstRow, row - 1, lastRow), number };
    case 'ArrowDown': return { row: within(firstRow, row + 1, lastRow), number };
    case 'Home': return ctrl ? { row: firstRow, number: 1 } : { row, number: 1 };
    case 'End': return ctrl ? { row: lastRow, number: seatsPerRow } : { row, number: seatsPerRow };
    default: return null;
  }
}
