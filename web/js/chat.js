// Chat without the page: what is loaded, what was really seen, what is unread.

/** Unread messages beyond this are shown as "99+". */
export const MAX_BADGE = 99;

export function badge(unread) {
  if (!unread || unread < 0) return '';
  return unread > MAX_BADGE ? `${MAX_BADGE}+` : String(unread);
}

/**
 * Timeline holds one chat room's messages by sequence number, without holes from
 * `first` to `last`. A message beyond the next one leaves a hole: `missing` is then
 * the sequence number before which to read.
 */
export class Timeline {
  #messages = new Map();
  #early = new Map(); // beyond a hole
  first = 0;
  last = 0;

  get messages() {
    return [...this.#messages.keys()].sort((a, b) => a - b).map((seq) => this.#messages.get(seq));
  }

  get(seq) {
    return this.#messages.get(seq);
  }

  get missing() {
    return this.#early.size > 0 ? Math.min(...this.#early.keys()) : null;
  }

  get hasOlder() {
    return this.first > 1;
  }

  /** A page of history, ascending. One that does not touch what is loaded replaces it. */
  load(page) {
    if (page.length === 0) return;
    const low = page[0].seq, high = page[page.length - 1].seq;
    const apart = this.last > 0 && (low > this.last + 1 || high < this.first - 1);
    if (apart && high < this.first) return; // older, not adjacent: of no use here
    if (apart) this.#restart();
    for (const message of page) this.#messages.set(message.seq, message);
    this.first = this.first === 0 ? low : Math.min(this.first, low);
    this.last = Math.max(this.last, high);
    this.#close();
  }

  /** One message as it comes; also a message again, deleted since. */
  add(message) {
    if (this.#messages.has(message.seq) || (this.last > 0 && message.seq < this.first)) {
      if (this.#messages.has(message.seq)) this.#messages.set(message.seq, message);
      return;
    }
    if (this.last > 0 && message.seq > this.last + 1) {
      this.#early.set(message.seq, message);
      return;
    }
    this.#messages.set(message.seq, message);
    if (this.first === 0) this.first = message.seq;
    this.last = message.seq;
    this.#close();
  }

  #close() {
    for (let message; (message = this.#early.get(this.last + 1)); ) {
      this.#early.delete(message.seq);
      this.#messages.set(message.seq, message);
      this.last = message.seq;
    }
    for (const seq of this.#early.keys()) if (seq <= this.last) this.#early.delete(seq);
  }

  #restart() {
    this.#messages.clear();
    this.first = 0;
    this.last = 0;
  }
}

/**
 * ReadMarks decides how far a member has read: up to a message that was on the
 * screen, if everything between is loaded too. Messages that are not loaded were
 * never there to be seen. A mark counts as sent only after the server took it, so
 * that a failed one is sent again.
 */
export class ReadMarks {
  #through; // read up to here
  #sent;

  constructor(readUpTo = 0) {
    this.#through = readUpTo;
    this.#sent = readUpTo;
  }

  get through() {
    return this.#through;
  }

  /** The server says that all up to here is read, here or on another device. */
  known(upTo) {
    this.#through = Math.max(this.#through, upTo);
    this.#sent = Math.max(this.#sent, upTo);
  }

  /** A message was seen, with everything loaded from `loadedFrom` up to it. */
  seen(seq, loadedFrom) {
    if (loadedFrom <= this.#through + 1) this.#through = Math.max(this.#through, seq);
  }

  /** The mark to send now, or null. */
  due() {
    return this.#through > this.#sent ? this.#through : null;
  }

  delivered(upTo) {
    this.#sent = Math.max(this.#sent, upTo);
  }
}

/** Others' messages past a read pointer, among those at hand. */
export function unreadIn(messages, readUpTo, me) {
  return messages.filter((m) => m.seq > readUpTo && m.sender !== me && !m.deleted).length;
}

/** The topic of a chat room's frames. */
export function chatTopic(roomId) {
  return `/topic/chat/${roomId}`;
}

/** The message and room of a CHAT_MESSAGE frame. */
export function messageOf(frame) {
  const message = frame.message ?? frame;
  return { roomId: frame.roomId ?? message.roomId ?? (frame.topic ?? '').split('/').pop(), message };
}
