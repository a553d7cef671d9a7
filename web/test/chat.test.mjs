import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReadMarks, Timeline, badge, messageOf, unreadIn } from '../js/chat.js';
import { ChatRooms, roomIdOf } from '../js/chatrooms.js';
import { settle } from './support.mjs';

const message = (seq, sender = 'bob') => ({ seq, sender, text: `m${seq}`, at: '2030-01-01T00:00:00Z', deleted: false });
const seqs = (timeline) => timeline.messages.map((m) => m.seq);

test('unread is shown as 99+ beyond 99, and never negative', () => {
  assert.equal(badge(0), '');
  assert.equal(badge(-4), '');
  assert.equal(badge(99), '99');
  assert.equal(badge(100), '99+');
  assert.equal(badge(1000), '99+');
});

test('one\'s own and deleted messages are not unread', () => {
  const list = [message(1), message(2, 'me'), { ...message(3), deleted: true }, message(4)];
  assert.equal(unreadIn(list, 0, 'me'), 2);
  assert.equal(unreadIn(list, 1, 'me'), 1);
});

test('messages join on by sequence, whatever the order they come in', () => {
  const timeline = new Timeline();
  timeline.load([message(5), message(6)]);
  timeline.add(message(8));
  assert.deepEqual(seqs(timeline), [5, 6]);
  assert.equal(timeline.missing, 8, 'seven is to be read');
  timeline.load([message(6), message(7)]);
  assert.deepEqual(seqs(timeline), [5, 6, 7, 8]);
  assert.equal(timeline.missing, null);
  timeline.add({ ...message(6), deleted: true, text: '' });
  assert.equal(timeline.get(6).deleted, true);
  timeline.load([message(3), message(4)]);
  assert.equal(timeline.first, 3);
  timeline.load([message(40), message(41)]);
  assert.deepEqual(seqs(timeline), [40, 41], 'a page that does not touch replaces');
});

// K25: a window far from the end was acknowledged up to now, and unseen messages became read.
test('what was seen beyond a hole marks nothing until the hole is loaded', () => {
  const marks = new ReadMarks(10);
  marks.seen(45, 40);
  assert.equal(marks.due(), null);
  marks.seen(45, 11);
  assert.equal(marks.due(), 45);
});

// K28: a mark counted as sent before it was, and a failed one was never repeated.
test('a mark is due until the server has it, and never goes back', () => {
  const marks = new ReadMarks(0);
  marks.seen(1, 1);
  assert.equal(marks.due(), 1);
  assert.equal(marks.due(), 1);
  marks.delivered(1);
  assert.equal(marks.due(), null);
  marks.known(5);
  marks.known(2);
  assert.equal(marks.through, 5);
});

test('frames of either shape give message and chat room', () => {
  assert.equal(messageOf({ roomId: 'r', message: message(1) }).message.seq, 1);
  assert.equal(messageOf({ topic: '/topic/chat/r', ...message(2) }).roomId, 'r');
  assert.equal(roomIdOf(' https://x/show.html?show=s&room=a%2Db '), 'a-b');
  assert.equal(roomIdOf('abc'), 'abc');
});

/** A chat over a little server that keeps two chat rooms. */
function setUp(visible = () => true) {
  const server = { rooms: [{ id: 'r', name: 'Lobby', showId: 's', lastSeq: 2, unread: 2, readUpTo: 0 }, { id: 'q', name: 'Q', showId: 's', lastSeq: 0, unread: 0, readUpTo: 0 }],
    messages: [message(1), message(2)], reads: [], gets: [] };
  const api = {
    get: async (path) => {
      server.gets.push(path);
      if (path === '/api/chat/rooms') return { rooms: structuredClone(server.rooms) };
      const before = Number(/before=(\d+)/.exec(path)?.[1] ?? Infinity);
      return { messages: server.messages.filter((m) => m.seq < before) };
    },
    post: async (path, body) => { if (path.endsWith('/read')) server.reads.push(body.upTo); },
  };
  const followed = [];
  const live = { follow: (t) => followed.push(t), unfollow: () => {} };
  const chat = new ChatRooms({ api, live, showId: 's', person: () => ({ id: 'me', name: 'Me' }), visible, onChange: () => {} });
  return { chat, server, followed };
}

const push = (chat, seq, roomId = 'r') => chat.frame({ event: 'CHAT_MESSAGE', roomId, message: message(seq) });

test('a closed chat room counts what comes, and opening it reads it', async () => {
  const { chat, followed } = setUp();
  await chat.refresh();
  assert.deepEqual(followed, ['/topic/chat/r', '/topic/chat/q']);
  push(chat, 3);
  push(chat, 3);
  assert.equal(chat.unread, 3, 'a message that comes twice counts once');
  await chat.open('r');
  assert.equal(chat.timeline.last, 2);
  assert.equal(chat.rooms[0].unread, 0);
});

// K22: the pointer moved although nobody looked, and unread messages were lost for good.
test('messages count as read only while somebody looks', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let looking = false;
  const { chat, server } = setUp(() => looking);
  await chat.refresh();
  await chat.open('r');
  push(chat, 3);
  chat.seen(3);
  t.mock.timers.tick(5000);
  await settle();
  assert.deepEqual(server.reads, []);
  assert.equal(chat.unread, 1);
  looking = true; // K31: the message arrived in the open room and stayed unread until it was left
  chat.seen(3);
  t.mock.timers.tick(5000);
  await settle();
  assert.deepEqual(server.reads, [3]);
  assert.equal(chat.unread, 0);
});

test('a hole in the live messages is read, without marking anything', async () => {
  const { chat, server } = setUp();
  await chat.refresh();
  await chat.open('r');
  server.messages.push(message(3), message(4));
  push(chat, 5);
  await settle();
  assert.deepEqual(seqs(chat.timeline), [1, 2, 3, 4, 5]);
  assert.match(server.gets.at(-1), /before=5/);
  assert.equal(chat.unread, 3);
});

test('reading on another device clears it here', async () => {
  const { chat } = setUp();
  await chat.refresh();
  chat.frame({ event: 'CHAT_READ', roomId: 'r', person: 'other', upTo: 2 });
  assert.equal(chat.unread, 2);
  chat.frame({ event: 'CHAT_READ', roomId: 'r', person: 'me', upTo: 2 });
  assert.equal(chat.unread, 0);
});
