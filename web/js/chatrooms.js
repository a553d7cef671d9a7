// The chat rooms of one person at one show: what the panel does, without the page.

import { at } from './api.js';
import { ReadMarks, Timeline, chatTopic, messageOf, unreadIn } from './chat.js';

const PAGE = 50;
const FILL_PAGE = 100;
/** Marks of messages seen in quick succession travel as one. */
const MARK_DELAY_MS = 400;
/** How often chat rooms are read again while there is no socket. */
const POLL_MS = 10_000;

export const LOBBY = 'Lobby';

export class ChatRooms {
  rooms = [];
  current = null; // id of the open chat room
  timeline = new Timeline();
  problem = '';
  #marks = null; #api; #live; #showId; #person; #onChange; #markTimer; #pollTimer; #visible = () => false; #filling = false;

  /** @param person resolves to {id}; @param visible tells whether the person looks at the messages */
  constructor({ api, live, showId, person, visible, onChange }) {
    this.#api = api;
    this.#live = live;
    this.#showId = showId;
    this.#person = person;
    this.#visible = visible;
    this.#onChange = onChange;
  }

  /** Unread messages over all chat rooms of the show. */
  get unread() {
    return this.rooms.reduce((sum, room) => sum + room.unread, 0);
  }

  get room() {
    return this.rooms.find((r) => r.id === this.current) ?? null;
  }

  get readUpTo() {
    return this.#marks?.through ?? 0;
  }

  async refresh() {
    const { rooms = [] } = (await this.#api.get('/api/chat/rooms')) ?? {};
    this.rooms = rooms.filter((r) => !r.showId || r.showId === this.#showId);
    for (const room of this.rooms) this.#live.follow(chatTopic(room.id));
    if (this.room) {
      this.#marks?.known(this.room.readUpTo);
      if (this.room.lastSeq > this.timeline.last) await this.#fill(this.room.lastSeq + 1);
    } else this.current = null;
    this.#count();
  }

  /** Opens a chat room. Reading its newest page tells the server that it is read up to there. */
  open(id) {
    return this.#try(async () => {
      this.current = id;
      this.timeline = new Timeline();
      this.#marks = null;
      this.#onChange();
      const page = await this.#page(id, `?limit=${PAGE}`);
      if (this.current !== id) return;
      this.timeline.load(page);
      this.#marks = new ReadMarks(Math.max(this.room?.readUpTo ?? 0, this.timeline.last));
      this.#count();
    });
  }

  older() {
    return this.#try(async () => {
      const id = this.current;
      const page = await this.#page(id, `?before=${this.timeline.first}&limit=${PAGE}`);
      if (this.current === id) this.timeline.load(page);
      this.#onChange();
    });
  }

  /** Opens the show's lobby: the one that others opened before, or a new one. */
  lobby() {
    return this.#try(async () => {
      const isLobby = (r) => r.name === LOBBY && r.showId === this.#showId;
      let room = this.rooms.find(isLobby);
      if (!room) {
        const { rooms = [] } = (await this.#api.get(at`/api/shows/${this.#showId}/chat/rooms`)) ?? {};
        room = rooms.find(isLobby);
        if (room) await this.#api.post(at`/api/chat/rooms/${room.id}/members`, undefined, { safe: true });
      }
      room ??= await this.#api.post('/api/chat/rooms', { name: LOBBY, showId: this.#showId });
      await this.refresh();
      await this.open(room.id);
    });
  }

  /** Joins by id or by an invitation, which is an address with the id in it. */
  join(invitation) {
    return this.#try(async () => {
      const id = roomIdOf(invitation);
      await this.#api.post(at`/api/chat/rooms/${id}/members`, undefined, { safe: true });
      await this.refresh();
      await this.open(id);
    });
  }

  leave() {
    return this.#try(async () => {
      const id = this.current;
      await this.#api.delete(at`/api/chat/rooms/${id}/members`);
      this.#live.unfollow(chatTopic(id));
      this.current = null;
      await this.refresh();
    });
  }

  /** Resolves to true when the message is with the server; a lost one is not sent twice. */
  send(text) {
    return this.#try(async () => {
      const id = this.current;
      const message = await this.#api.post(at`/api/chat/rooms/${id}/messages`, { text });
      this.#arrived(id, { sender: this.#person()?.id, senderName: this.#person()?.name, text, ...message });
    });
  }

  /** A message was on the screen of somebody who was looking. */
  seen(seq) {
    if (!this.#marks || !this.#visible()) return;
    this.#marks.seen(seq, this.timeline.first);
    if (this.#marks.due() === null) return;
    this.#count();
    clearTimeout(this.#markTimer);
    this.#markTimer = setTimeout(() => this.#sendMark(), MARK_DELAY_MS);
  }

  frame(frame) {
    if (frame.event === 'CHAT_MESSAGE') {
      const { roomId, message } = messageOf(frame);
      this.#arrived(roomId, message);
    } else if (frame.event === 'CHAT_READ') this.#readElsewhere(frame);
    else if (frame.event === 'HELLO') this.refresh().catch(() => {}); // the next HELLO or opening repeats it
  }

  /** Without a socket the chat rooms are read again now and then. */
  linkChanged(link) {
    clearTimeout(this.#pollTimer);
    if (link !== 'polling') return;
    this.#pollTimer = setTimeout(async () => {
      await this.refresh().catch(() => {});
      this.linkChanged(link);
    }, POLL_MS);
  }

  close() {
    clearTimeout(this.#markTimer);
    clearTimeout(this.#pollTimer);
    for (const room of this.rooms) this.#live.unfollow(chatTopic(room.id));
    this.rooms = [];
    this.current = null;
  }

  async #try(work) {
    try {
      this.problem = '';
      await work();
      return true;
    } catch (err) {
      this.problem = chatProblem(err);
      return false;
    } finally {
      this.#onChange();
    }
  }

  async #page(id, query) {
    return (await this.#api.get(at`/api/chat/rooms/${id}/messages` + query))?.messages ?? [];
  }

  #arrived(roomId, message) {
    const room = this.rooms.find((r) => r.id === roomId);
    if (!room) return;
    const fresh = message.seq > room.lastSeq;
    room.lastSeq = Math.max(room.lastSeq, message.seq);
    if (roomId === this.current) {
      this.timeline.add(message);
      if (this.timeline.missing !== null) this.#fill(this.timeline.missing).catch(() => {}); // the next message asks again
    } else if (fresh && message.sender !== this.#person()?.id) room.unread++;
    this.#count();
  }

  /** Reads what lies between the loaded messages and `before`; older pages mark nothing as read. */
  async #fill(before) {
    if (this.#filling) return;
    this.#filling = true;
    try {
      const id = this.current;
      const page = await this.#page(id, `?before=${before}&limit=${FILL_PAGE}`);
      if (this.current === id) this.timeline.load(page);
    } finally {
      this.#filling = false;
      this.#count();
    }
  }

  #readElsewhere({ roomId, topic, person, upTo, unread }) {
    if (person !== this.#person()?.id) return;
    const id = roomId ?? topic?.split('/').pop();
    const room = this.rooms.find((r) => r.id === id);
    if (!room) return;
    room.readUpTo = Math.max(room.readUpTo, upTo);
    if (id === this.current) this.#marks?.known(upTo);
    else if (Number.isFinite(unread)) room.unread = unread;
    else if (upTo >= room.lastSeq) room.unread = 0;
    this.#count();
  }

  /** The open chat room counts from what is loaded; the others as the server says. */
  #count() {
    const room = this.room;
    if (room && this.#marks) room.unread = unreadIn(this.timeline.messages, this.#marks.through, this.#person()?.id);
    this.#onChange();
  }

  async #sendMark() {
    const id = this.current;
    const marks = this.#marks;
    const upTo = marks?.due() ?? null;
    if (upTo === null) return;
    try {
      await this.#api.post(at`/api/chat/rooms/${id}/read`, { upTo }, { safe: true });
      marks.delivered(upTo);
    } catch {
      clearTimeout(this.#markTimer);
      this.#markTimer = setTimeout(() => this.#sendMark(), POLL_MS);
    }
  }
}

/** The id in an invitation, or the text itself. */
export function roomIdOf(invitation) {
  const text = invitation.trim();
  const found = /[?&]room=([^&#]+)/.exec(text);
  return found ? decodeURIComponent(found[1]) : text;
}

function chatProblem(err) {
  if (err.status === 404) return 'There is no such chat room.';
  if (err.status === 403) return 'You are not a member of this chat room.';
  return err.message;
}
