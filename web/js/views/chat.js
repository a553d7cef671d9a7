// The chat panel.

import { badge } from '../chat.js';
import { clockTime } from '../text.js';
import { byId, el, line, options, show, text } from './dom.js';

/** Scrolled to within this of the end counts as the live edge, in pixels. */
const EDGE = 40;
/** A message counts as seen when this share of it is on the screen. */
const SEEN_SHARE = 0.6;

export class ChatView {
  #chat = null; #me; #shown = new Map(); #shownRoom = null; #onScreen = new Set(); #observer; #unseenBelow = false;

  /** @param me resolves to the id of the person */
  constructor(me) {
    this.#me = me;
    this.#observer = new IntersectionObserver((entries) => this.#moved(entries), { root: byId('chat-messages'), threshold: SEEN_SHARE });
    document.addEventListener('visibilitychange', () => this.#look());
    window.addEventListener('focus', () => this.#look());
    byId('chat-toggle').addEventListener('click', () => this.#toggle());
    byId('chat-rooms').addEventListener('change', () => this.#chat.open(byId('chat-rooms').value));
    byId('chat-lobby').addEventListener('click', () => this.#chat.lobby());
    byId('chat-older').addEventListener('click', () => this.#older());
    byId('chat-leave').addEventListener('click', () => this.#chat.leave());
    byId('chat-jump').addEventListener('click', () => this.#toEdge());
    byId('chat-invite').addEventListener('click', () => this.#invite());
    byId('chat-messages').addEventListener('scroll', () => { if (this.#atEdge()) this.#unseenBelow = false; show(byId('chat-jump'), this.#unseenBelow); });
    byId('chat-join-form').addEventListener('submit', async (event) => {
      event.preventDefault();
      if (await this.#chat.join(byId('chat-join-id').value)) byId('chat-join-id').value = '';
    });
    byId('chat-form').addEventListener('submit', (event) => { event.preventDefault(); this.#send(); });
  }

  attach(chat) {
    this.#chat = chat;
  }

  /** True when the messages are in front of somebody: open, and in a tab that is shown. */
  looking() {
    return document.visibilityState === 'visible' && this.opened();
  }

  opened() {
    return !byId('chat-body').hidden;
  }

  openPanel() {
    if (!this.opened()) this.#toggle();
  }

  render(signedIn) {
    show(byId('chat'), signedIn);
    if (!signedIn || !this.#chat) return;
    const chat = this.#chat;
    const unread = badge(chat.unread);
    line(byId('chat-badge'), unread);
    byId('chat-badge').setAttribute('aria-label', unread ? `${unread} unread` : '');
    options(byId('chat-rooms'), [
      ...(chat.current ? [] : [['', chat.rooms.length > 0 ? 'Choose…' : 'None yet']]),
      ...chat.rooms.map((r) => [r.id, r.unread > 0 && r.id !== chat.current ? `${r.name} (${badge(r.unread)})` : r.name]),
    ]);
    byId('chat-rooms').value = chat.current ?? '';
    byId('chat-room').dataset.room = chat.current ?? '';
    for (const id of ['chat-room', 'chat-invite', 'chat-leave']) show(byId(id), chat.current !== null);
    show(byId('chat-start'), chat.current === null);
    line(byId('chat-problem'), chat.problem);
    show(byId('chat-older'), chat.timeline.hasOlder);
    this.#messages();
  }

  async #toggle() {
    const open = byId('chat-body').hidden;
    show(byId('chat-body'), open);
    byId('chat-toggle').setAttribute('aria-expanded', String(open));
    if (open && !this.#chat.current && this.#chat.rooms.length > 0) await this.#chat.open(this.#chat.rooms[0].id);
    if (open) this.#toUnread();
  }

  #messages() {
    const { timeline, current } = this.#chat;
    const list = byId('chat-messages');
    if (this.#shownRoom !== current) {
      this.#shownRoom = current;
      this.#clear();
    }
    const edge = this.#atEdge();
    const wanted = timeline.messages;
    const known = new Set(wanted.map((m) => m.seq));
    for (const [seq, item] of this.#shown) if (!known.has(seq)) this.#remove(seq, item);
    let added = 0;
    let before = null;
    for (const message of wanted.toReversed()) {
      const item = this.#shown.get(message.seq) ?? this.#item(message, ++added);
      paint(item, message);
      if (item.nextSibling !== before || item.parentNode !== list) list.insertBefore(item, before);
      before = item;
    }
    if (added === 0) return;
    if (edge) this.#toEdge();
    else if (timeline.last > Math.max(0, ...this.#onScreen)) this.#unseenBelow = !this.#atEdge();
    show(byId('chat-jump'), this.#unseenBelow);
  }

  #item(message) {
    const own = message.sender === this.#me();
    const item = el('li', { 'data-seq': message.seq, class: own ? 'own' : null },
      el('span', { class: 'meta' }, `${own ? 'You' : message.senderName || message.sender} · ${clockTime(message.at)}`),
      el('span', { class: 'text' }));
    this.#shown.set(message.seq, item);
    this.#observer.observe(item);
    return item;
  }

  #remove(seq, item) {
    this.#observer.unobserve(item);
    this.#onScreen.delete(seq);
    this.#shown.delete(seq);
    item.remove();
  }

  #clear() {
    for (const [seq, item] of [...this.#shown]) this.#remove(seq, item);
    this.#unseenBelow = false;
  }

  #moved(entries) {
    for (const entry of entries) {
      const seq = Number(entry.target.dataset.seq);
      // A message taller than the list never shows its share: filling the list counts.
      const fills = entry.intersectionRect.height >= (entry.rootBounds?.height ?? Infinity) * SEEN_SHARE;
      if (entry.isIntersecting && (entry.intersectionRatio >= SEEN_SHARE || fills)) this.#onScreen.add(seq);
      else this.#onScreen.delete(seq);
    }
    this.#look();
  }

  /** Only what is on the screen while somebody looks counts as read. */
  #look() {
    if (!this.looking() || !this.#chat) return;
    for (const seq of [...this.#onScreen].sort((a, b) => a - b)) this.#chat.seen(seq);
  }

  /** To the first message that is not read, so that none is passed over; else to the end. */
  #toUnread() {
    const list = byId('chat-messages');
    const first = this.#chat.timeline.messages.find((m) => m.seq > this.#chat.readUpTo && m.sender !== this.#me());
    const item = first && this.#shown.get(first.seq);
    if (!item) return this.#toEdge();
    list.scrollTop = item.offsetTop - list.offsetTop;
    this.#unseenBelow = !this.#atEdge();
    show(byId('chat-jump'), this.#unseenBelow);
  }

  #atEdge() {
    const list = byId('chat-messages');
    return list.scrollHeight - list.scrollTop - list.clientHeight <= EDGE;
  }

  #toEdge() {
    const list = byId('chat-messages');
    list.scrollTop = list.scrollHeight;
    this.#unseenBelow = false;
    show(byId('chat-jump'), false);
  }

  async #older() {
    const list = byId('chat-messages');
    const fromEnd = list.scrollHeight - list.scrollTop;
    await this.#chat.older();
    list.scrollTop = list.scrollHeight - fromEnd;
  }

  async #send() {
    const field = byId('chat-text');
    const message = field.value.trim();
    if (!message || byId('chat-send').disabled) return;
    byId('chat-send').disabled = true;
    if (await this.#chat.send(message)) {
      field.value = '';
      this.#toEdge();
    }
    byId('chat-send').disabled = false;
    field.focus();
  }

  async #invite() {
    const link = new URL(location.href);
    link.hash = '';
    link.searchParams.set('room', this.#chat.current);
    try {
      await navigator.clipboard.writeText(link.href);
      text(byId('chat-invite'), 'Copied');
    } catch {
      byId('chat-invite').replaceWith(el('input', { id: 'chat-invite', readonly: true, value: link.href, 'aria-label': 'Invitation' }));
      return;
    }
    setTimeout(() => text(byId('chat-invite'), 'Copy invitation'), 2000);
  }
}

function paint(item, message) {
  const body = item.lastElementChild;
  text(body, message.deleted ? 'This message was deleted.' : message.text);
  body.classList.toggle('gone', Boolean(message.deleted));
}
